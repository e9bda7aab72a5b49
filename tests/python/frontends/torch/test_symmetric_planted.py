"""The programs of planted/symmetric.py: right ones are clean in any order, defects are reported by their lines."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from planted import marks, symmetric
from planted.runs import run
from sampling import sampled

pytestmark = pytest.mark.shows("PyTorch: symmetric memory")

WRONG = [(name, defect) for name, text in symmetric.PROGRAMS.items() for defect in marks.defects(text)]


@pytest.mark.parametrize("name", sampled(symmetric.PROGRAMS, 8))
def test_right_programs_are_clean_in_any_order(name: str, tmp_path: Path) -> None:
    text = marks.planted(symmetric.BEGIN + symmetric.PROGRAMS[name])
    for flags in ((), ("--check", "--reorder", "7")):
        status, said = run(tmp_path, text, *flags)
        assert status == 0 and "Warning" not in said, (flags, said)


@pytest.mark.parametrize(("name", "defect"), sampled(WRONG, 16))
def test_a_planted_defect_is_reported(name: str, defect: str, tmp_path: Path) -> None:
    text = symmetric.BEGIN + symmetric.PROGRAMS[name]
    status, said = run(tmp_path, marks.planted(text, defect), "--check")
    wanted, found = marks.named(text, defect), marks.reports(said)
    if defect.startswith("beyond"):
        found = [
            {int(n)} for n in re.findall(r"KernelError: kernel .* failed at .*program\.py:(\d+): ValueError", said)
        ]
    assert status and found and found[0] and found[0] <= wanted, (wanted, found, said)
