"""The programs of tests/scripts print on the installed PyTorch, with ranks in one process, what they print in many."""

import subprocess
import sys

import pytest
from recorded_scripts import RECORDED, SCRIPTS, started

pytestmark = [
    pytest.mark.shows("programs: scripts for torchrun, which print what they print on processes of PyTorch"),
    pytest.mark.shows("PyTorch: torch.multiprocessing"),
]

DIFFERS = {
    "group_methods": "the flight recorder lacks what a group's own methods issue",
    "pipelining": "the last digit of a loss",
}
MARKS = {name: pytest.mark.xfail(reason=reason, strict=True) for name, reason in DIFFERS.items()}


@pytest.mark.parametrize(
    "recorded", [pytest.param(file, marks=MARKS.get(file.stem, ()), id=file.stem) for file in RECORDED]
)
def test_prints_what_it_prints_on_processes(recorded):
    command = [sys.executable, "-m", "torchemu", "run", "--torch", "real", *started(recorded)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, cwd=SCRIPTS)
    assert done.returncode == 0, done.stderr
    assert done.stdout == recorded.read_text()
