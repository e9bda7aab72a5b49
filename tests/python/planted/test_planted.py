"""Right programs are clean in any order; with a planted defect one ordinary run reports that, by its lines."""

from __future__ import annotations

from pathlib import Path

import pytest
import sampling
from launch import launch
from planted import hosts, language, marks, peers, triton_kernels
from sampling import sampled

TABLES = {
    "language": (language.BEGIN, language.PROGRAMS),
    "hosts": (hosts.BEGIN, hosts.PROGRAMS),
    "peers": (peers.BEGIN, peers.PROGRAMS),
    "triton": (triton_kernels.BEGIN, triton_kernels.PROGRAMS),
}

ONE_IN = 4
"""Of so many programs one is no slow test, and of its defects the first. The others are slow: they are hundreds."""

NAMES = [(table, name) for table, (_, programs) in TABLES.items() for name in programs]
RIGHT = sampled(NAMES, ONE_IN)
WRONG = [
    pytest.param(table, name, defect, marks=sampling.marks(at % ONE_IN or i))
    for at, (table, name) in enumerate(NAMES)
    for i, defect in enumerate(marks.defects(TABLES[table][1][name]))
]
IN_ORDERS = ["--check", *(pytest.param(f, marks=pytest.mark.slow) for f in ("--check --reorder 7", "--explore 3"))]


def run(folder: Path, text: str, *flags: str) -> tuple[int, str]:
    """Runs a program on four ranks, and returns its exit status and what it says."""
    file = folder / "program.py"
    file.write_text(text)
    outcome = launch("--nproc-per-node", "4", *flags, file)
    return outcome.status, outcome.out + outcome.err


@pytest.mark.parametrize("flags", IN_ORDERS)
@pytest.mark.parametrize(("table", "name"), RIGHT)
def test_right_programs_are_clean(table: str, name: str, flags: str, tmp_path: Path) -> None:
    begin, programs = TABLES[table]
    status, said = run(tmp_path, marks.planted(begin + programs[name]), *flags.split())
    assert status == 0, said


@pytest.mark.parametrize(("table", "name", "defect"), WRONG)
def test_a_planted_defect_is_reported_by_its_lines(table: str, name: str, defect: str, tmp_path: Path) -> None:
    begin, programs = TABLES[table]
    text = begin + programs[name]
    wanted = marks.named(text, defect)
    status, said = run(tmp_path, marks.planted(text, defect), "--check")
    found = marks.reports(said)
    assert status and found and found[0], said
    assert all(lines <= wanted for lines in found), (wanted, found, said)


BEFORE = """
import torch, sys
x = torch.ones(64, device="cuda") * 3  #! no synchronize
torch.cuda.synchronize()  #- no synchronize
s = torch.cuda.Stream()
with torch.cuda.stream(s): y = x + 1  #! no synchronize
torch.cuda.synchronize()
print(y.sum())
"""


@pytest.mark.parametrize("defect", [None, *marks.defects(BEFORE)])
def test_what_was_before_there_was_a_second_stream(defect: str | None, tmp_path: Path) -> None:
    status, said = run(tmp_path, marks.planted(BEFORE, defect), "--check")
    assert (status == 0) == (defect is None), said
    assert defect is None or marks.reports(said)[0] == marks.named(BEFORE, defect)
