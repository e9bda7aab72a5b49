"""Programs of remote procedure calls, in the shapes of PyTorch's tutorials, print what processes of PyTorch printed.

rpc_programs/record.py has recorded that.
"""

import pytest
from rpc_programs.record import HERE, printed
from sampling import sampled

NAMES = sorted(path.stem for path in HERE.glob("*.out"))
SIMULATED = ("-m", "torchemu", "run", "--torch", "real", "--nproc-per-node", "1")


def test_there_are_programs():
    assert len(NAMES) == 6 == len([*HERE.glob("*.py")]) - 1


@pytest.mark.parametrize("order", [(), pytest.param(("--schedule", "random"), marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", sampled(NAMES, 6))
def test_they_print_what_processes_print(name, order):
    recorded = (HERE / f"{name}.out").read_text()
    assert recorded.count("\n") > 1 and printed(name, *SIMULATED, *order) == recorded
