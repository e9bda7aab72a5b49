"""Products of which parts are communicated while others are computed: the bench compares them with PyTorch's itself."""

from __future__ import annotations

import shlex
import subprocess
import sys

import pytest
from conftest import ROOT

_PAGE = (ROOT / "docs" / "triton.md").read_text()


@pytest.mark.slow
def test_what_the_page_shows() -> None:
    """Under the checker too, which changes no time."""
    at = _PAGE.index("$ torchemu run --torch numpy --nnodes 2")
    command, *shown = _PAGE[at : _PAGE.index("```", at)].splitlines()
    for flags in ([], ["--check"]):
        line = [sys.executable, "-m", "torchemu", "run", *flags, *shlex.split(command)[3:]]
        done = subprocess.run(line, cwd=ROOT, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stderr[-3000:]
        assert done.stdout.splitlines() == shown
