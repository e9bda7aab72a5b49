"""A member that leaves out a group which others make is told so, where they would wait for it on a cluster."""

from __future__ import annotations

from pathlib import Path

import pytest
from launch import launch, written

PROGRAM = """
import torch, torch.distributed as dist
dist.init_process_group("{}")
rank = dist.get_rank()
if rank != {}:
    group = dist.new_group({})
dist.barrier()
"""


@pytest.mark.parametrize("absent", [0, 1, 2])
@pytest.mark.parametrize("early", [False, True])
def test_a_member_that_leaves_it_out(tmp_path: Path, absent: int, early: bool) -> None:
    text = PROGRAM.format("gloo", absent, [0, 1, 2])
    if early:  # it has ended when the others make the group
        text = text.replace("dist.barrier()", "").replace("if rank != ", "if rank != ", 1)
        text = text.replace("    group", "    import time; time.sleep(0.01)\n    group")
    outcome = launch("--nproc-per-node", "4", written(tmp_path, text))
    assert outcome.status == 1
    assert f"rank {absent} has ended without making process group 1, of ranks [0, 1, 2], as rank" in outcome.err


@pytest.mark.parametrize(
    ("backend", "absent", "ranks"),
    [("gloo", 3, [0, 1, 2]), ("gloo", 99, [0, 1]), ("nccl", 1, [0, 1]), ("gloo", 99, [0, 1, 2, 3])],
)
def test_who_need_not_make_it(tmp_path: Path, backend: str, absent: int, ranks: list[int]) -> None:
    outcome = launch("--nproc-per-node", "4", written(tmp_path, PROGRAM.format(backend, absent, ranks)))
    assert (outcome.status, outcome.err) == (0, "")
