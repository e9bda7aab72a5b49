"""The programs of tests/scripts print on the installed PyTorch, with ranks in one process, what they print in many."""

import re
import subprocess
import sys

import pytest
from recorded_scripts import RECORDED, SCRIPTS, started
from sampling import sampled

pytestmark = [
    pytest.mark.shows("programs: scripts for torchrun, which print what they print on processes of PyTorch"),
    pytest.mark.shows("PyTorch: torch.multiprocessing"),
]

LOSSES_BY_MACHINE = frozenset({"pipelining"})
"""Scripts that print so many digits of losses that the last one is another on a machine with other vector units."""
LOSS = re.compile(r"-?\d+\.\d{3,}")


@pytest.mark.parametrize("recorded", sampled(RECORDED, 20), ids=lambda file: file.stem)
def test_prints_what_it_prints_on_processes(recorded):
    command = [sys.executable, "-m", "torchemu", "run", "--torch", "real", *started(recorded)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, cwd=SCRIPTS)
    assert done.returncode == 0, done.stderr
    wanted = recorded.read_text()
    if recorded.stem in LOSSES_BY_MACHINE:
        assert LOSS.sub("", done.stdout) == LOSS.sub("", wanted)
        found = [float(loss) for loss in LOSS.findall(done.stdout)]
        assert found == pytest.approx([float(loss) for loss in LOSS.findall(wanted)], rel=1e-5)
    else:
        assert done.stdout == wanted
