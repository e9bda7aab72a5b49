"""The programs of planted/nvshmem.py: right ones give what their oracles say in any order, defects are reported."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from planted import marks, nvshmem
from planted.runs import run
from sampling import sampled

pytestmark = pytest.mark.shows("PyTorch: symmetric memory")

WRONG = [(name, defect) for name, text in nvshmem.PROGRAMS.items() for defect in marks.defects(text)]
NODES = ("--nnodes", "2", "--nproc-per-node", "2", "--topology", "h800_2x8")
NEAR = ("a reduce-scatter by gets", "a subgroup's exchange")  # views of a peer's memory


@pytest.mark.parametrize("name", sampled(nvshmem.PROGRAMS, 16))
def test_right_programs_are_clean_in_any_order(name: str, tmp_path: Path) -> None:
    text = marks.planted(nvshmem.BEGIN + nvshmem.PROGRAMS[name])
    for flags in ((), ("--check", "--reorder", "7")):
        status, said = run(tmp_path, text, *flags)
        assert status == 0, (flags, said)


@pytest.mark.parametrize("name", sampled((name for name in nvshmem.PROGRAMS if name not in NEAR), 16))
def test_right_programs_run_on_two_nodes(name: str, tmp_path: Path) -> None:
    status, said = run(tmp_path, marks.planted(nvshmem.BEGIN + nvshmem.PROGRAMS[name]), *NODES, "--check")
    assert status == 0, said


@pytest.mark.parametrize(("name", "defect"), sampled(WRONG, 16))
def test_a_planted_defect_is_reported(name: str, defect: str, tmp_path: Path) -> None:
    text = (nvshmem.BEGIN + nvshmem.PROGRAMS[name]).replace("    assert found", "    found")  # whatever comes of it
    status, said = run(tmp_path, marks.planted(text, defect), "--check")
    assert status, said
    wanted, found = marks.named(text, defect), marks.reports(said)
    if waits := re.search(r"DeadlockError: deadlock at simulated time .*?=====", said, re.DOTALL):
        assert defect.startswith("silent"), said
        found = [{int(n) for n in re.findall(r"at program\.py:(\d+) waits", waits[0])}]
    assert found and found[0] and found[0] <= wanted, (wanted, found, said)
