"""Docstrings, and the texts below variables, begin with sentences that have a subject or a verb."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from conftest import ROOT

BEGINNING = re.compile(r'^\s*[rR]?"""(What|Whether|Those|As)\b.*', re.MULTILINE)


@pytest.mark.parametrize("folder", ["python/torchemu", "benches", "tests"])
def test_docstrings_begin_with_a_sentence(folder: str) -> None:
    found = [
        f"{path.relative_to(ROOT)}:{text[: match.end()].count(chr(10)) + 1}: {match.group().strip()}"
        for path in sorted(Path(ROOT, folder).rglob("*.py"))
        for text in (path.read_text(),)
        for match in BEGINNING.finditer(text)
    ]
    assert not found, "\n".join(found)
