"""The tutorial that gathers between nodes, as a user has it: every line of its text, on one node and on two."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import ROOT

pytestmark = [pytest.mark.slow, pytest.mark.shows("libraries: Triton-distributed")]

TEXT = ROOT / "tests" / "python" / "data" / "triton" / "03-inter-node-allgather.txt"

ONE, TWO = "push 1d", "push 2d"


@pytest.fixture
def script(tmp_path: Path) -> Path:
    """The tutorial as a script."""
    path = tmp_path / "03-inter-node-allgather.py"
    path.write_bytes(TEXT.read_bytes())
    return path


def run(script: Path, *flags: str) -> list[str]:
    """Returns what the script prints, line by line."""
    command = [sys.executable, "-m", "torchemu", "run", "--torch", "numpy", *flags, script.name]
    done = subprocess.run(command, cwd=script.parent, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr[-4000:]
    return done.stdout.splitlines()


def check(lines: list[str], world: int) -> None:
    """Each rank prints each of its lines after both headings, and bandwidths are those of the latencies."""
    for r in range(world):
        assert lines.count(f"✅ RANK[{r}] check passed") == 2
        for name in ("NCCL", "Triton"):
            form = rf"\[{name}\] RANK = {r}, 8 KB, Latency ([0-9.]+) us, Bus bandwith = ([0-9.]+) GB/S"
            found = [m for line in lines if (m := re.fullmatch(form, line))]
            assert len(found) == 2
            for m in found:
                latency, bandwidth = map(float, m.groups())
                assert latency > 1
                assert bandwidth == pytest.approx(8192e-3 / latency * (world - 1) / world, abs=0.011)
    for heading in (ONE, TWO):
        assert lines.count(f"using {heading}...") == world
    assert len(lines) == world * 8


@pytest.mark.parametrize("world", [4, *(pytest.param(n, marks=pytest.mark.slow) for n in (1, 8))])
def test_one_node(script: Path, world: int) -> None:
    check(run(script, "--nproc-per-node", str(world)), world)


def test_two_nodes_of_eight(script: Path) -> None:
    check(run(script, "--nproc-per-node", "8", "--nnodes", "2", "--topology", "h800_2x8"), 16)


WORLDS = {
    4: ("--nproc-per-node", "4"),
    8: ("--nproc-per-node", "8"),
    (2, 4): ("--nnodes", "2", "--nproc-per-node", "4"),
    (2, 8): ("--nnodes", "2", "--nproc-per-node", "8", "--topology", "h800_2x8"),
}


@pytest.mark.parametrize("world", WORLDS, ids=str)
def test_it_relies_on_no_luck(script: Path, world: int | tuple[int, int]) -> None:
    ranks = world if isinstance(world, int) else world[0] * world[1]
    check(run(script, *WORLDS[world], "--check", "--reorder", "3"), ranks)


@pytest.mark.parametrize(("world", "schedules"), [(8, 4), ((2, 4), 4), ((2, 8), 2)], ids=str)
def test_no_schedule_changes_anything(script: Path, world: int | tuple[int, int], schedules: int) -> None:
    run(script, *WORLDS[world], "--check", "--explore", str(schedules))  # each takes seconds on 16 ranks
