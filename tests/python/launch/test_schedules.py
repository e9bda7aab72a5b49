"""Tests of what --schedule tries out: orders of ranks that simulated time alone would not bring about."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest
from launch import launch, written

FIRST_COME = """
import torch, torch.distributed as dist
dist.init_process_group("gloo")
t = torch.ones(4)
dist.all_reduce(t)  # which leaves the ranks one after the other, in simulated time
if dist.get_rank():
    dist.send(t, 0)
else:
    print(*[dist.recv(t) for _ in range(3)])
"""


@pytest.mark.slow
@pytest.mark.parametrize("policy", ["random", "pct"])
def test_ranks_come_in_every_order(tmp_path: Path, policy: str) -> None:
    """Any host may be slow to go on after a collective."""
    program = written(tmp_path, FIRST_COME)
    flags = ("--nproc-per-node", 4, "--schedule", policy, "--schedule-seed")
    orders = {launch(*flags, seed, program).out for seed in range(60)}
    assert orders == {f"{a} {b} {c}\n" for a, b, c in itertools.permutations((1, 2, 3))}
