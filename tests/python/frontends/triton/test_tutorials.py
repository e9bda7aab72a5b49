"""Programs in the manner of Triton-distributed's tutorials, on four ranks, checked and with messages in no order.

Each compares its results itself: with PyTorch's collectives, or with the sum in the order in which it adds.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.slow, pytest.mark.shows("programs: tutorials for Triton-distributed")]

FOLDER = Path(__file__).parent / "tutorials"
RANKS = 4


def run(name: str, *flags: str, **environ: str) -> list[str]:
    """Returns what a tutorial prints, line by line."""
    command = [
        sys.executable,
        "-m",
        "torchemu",
        "run",
        "--torch",
        "numpy",
        "--nproc-per-node",
        str(RANKS),
        *flags,
        f"{name}.py",
    ]
    env = {**os.environ, **environ}
    done = subprocess.run(command, cwd=FOLDER, env=env, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-4000:]
    return done.stdout.splitlines()


EVERY = {
    "notify_wait": [f"rank{r} Passed✅!" for r in range(RANKS)],
    "intra_node_reduce_scatter": [f"RANK {r}: pass!" for r in range(RANKS)],
    "inter_node_reduce_scatter": [f"RANK {r}: pass!" for r in range(RANKS)],
    "all_to_all": [f"✅ Round-{k} combine check passed!" for k in range(3)],
}


@pytest.mark.parametrize("name", EVERY)
def test_tutorial(name: str) -> None:
    lines = run(name, "--check", "--reorder", "3", ITEMS="70", ROUNDS="2")
    assert sorted(lines) == sorted(EVERY[name])


def test_all_to_all_in_float8() -> None:
    assert run("all_to_all", FP8="1") == EVERY["all_to_all"]


def test_gathers_by_copies_and_by_puts() -> None:
    lines = run("intra_node_allgather", "--check")
    for rank in range(RANKS):
        for kind in ("CpEngine", "NVSHMEM"):
            assert lines.count(f"Rank {rank} {kind} Signal:") == 1
        assert lines.count(f"Rank {rank} Pass!✅") == 2
    assert lines.count(f" {[1] * RANKS}") == 2 * RANKS


NODES = ("--nnodes", "2", "--nproc-per-node", "2")


def test_products_of_what_nodes_gather() -> None:
    lines = run("inter_node_allgather_gemm", "--check", "--reorder", "3", *NODES)
    assert sorted(lines) == [f"RANK {r}: pass!" for r in range(RANKS)]


def test_one_node_gathers_nothing_from_others() -> None:
    assert run("inter_node_allgather_gemm") == ["Skip: it needs two nodes at least"]


def test_products_are_reduced_and_scattered() -> None:
    lines = run("gemm_reduce_scatter")
    for rank in range(RANKS):
        for name in ("dist-triton", "torch"):
            assert sum(line.startswith(f"{name} #{rank} ") for line in lines) == 1
