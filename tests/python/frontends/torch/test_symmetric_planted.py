"""The programs of planted/symmetric.py: right ones are clean in any order, defects are reported by their lines."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from planted import marks, symmetric

pytestmark = pytest.mark.shows("PyTorch: symmetric memory")

WRONG = [(name, defect) for name, text in symmetric.PROGRAMS.items() for defect in marks.defects(text)]


def run(folder: Path, text: str, *flags: str) -> tuple[int, str]:
    """Runs a program on four ranks, and returns its exit status and what it says."""
    file = folder / "program.py"
    file.write_text(text)
    command = [sys.executable, "-m", "torchemu", "run", "--torch", "real", "--nproc-per-node", "4", *flags, str(file)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    return done.returncode, done.stdout + done.stderr


@pytest.mark.parametrize("name", symmetric.PROGRAMS)
def test_right_programs_are_clean_in_any_order(name: str, tmp_path: Path) -> None:
    text = marks.planted(symmetric.BEGIN + symmetric.PROGRAMS[name])
    for flags in ((), ("--check", "--reorder", "7")):
        status, said = run(tmp_path, text, *flags)
        assert status == 0 and "Warning" not in said, (flags, said)


@pytest.mark.parametrize(("name", "defect"), WRONG)
def test_a_planted_defect_is_reported(name: str, defect: str, tmp_path: Path) -> None:
    text = symmetric.BEGIN + symmetric.PROGRAMS[name]
    status, said = run(tmp_path, marks.planted(text, defect), "--check")
    wanted, found = marks.named(text, defect), marks.reports(said)
    if defect.startswith("beyond"):
        found = [
            {int(n)} for n in re.findall(r"KernelError: kernel .* failed at .*program\.py:(\d+): ValueError", said)
        ]
    assert status and found and found[0] and found[0] <= wanted, (wanted, found, said)
