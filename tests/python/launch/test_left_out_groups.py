"""A member that leaves out a group which others make is told so, where they would wait for it on a cluster."""

from __future__ import annotations

import re
from importlib.util import find_spec
from pathlib import Path

import pytest
from launch import launch, written

TORCHES = ["numpy", *(["real"] if find_spec("torch") else [])]

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


ALONE = """
import torch, torch.distributed as dist
dist.init_process_group("{}")
rank = dist.get_rank()
for number in (0, 1):
    group = dist.new_group([rank] if rank < {} else [0, 1])
    total = torch.full((3,), rank) + torch.arange(3)
    if rank < {}:
        dist.all_reduce(total, group=group)
        dist.destroy_process_group(group)
    assert total.tolist() == [rank, rank + 1, rank + 2]
pair = dist.new_group([1, 3])
if rank in (1, 3):
    dist.all_reduce(total, group=pair)
assert total.tolist() == [(4 if rank in (1, 3) else rank) + k * (1 + rank % 2) for k in range(3)]
"""


@pytest.mark.parametrize("torch", TORCHES)
@pytest.mark.parametrize("backend", ["gloo", "nccl"])
def test_each_may_make_a_group_of_itself(tmp_path: Path, backend: str, torch: str) -> None:
    text = ALONE.format(backend, 4, 4)
    if backend == "nccl" and torch == "real":
        text = text.replace("+ torch.arange(3)", "+ torch.arange(3); total = total.cuda(rank)")
    of_torch = ("--torch", torch, "--nproc-per-node", "4")
    outcome = launch(*of_torch, "--check", written(tmp_path, text))
    assert (outcome.status, outcome.err) == (0, "")
    outcome = launch(*of_torch, written(tmp_path, ALONE.format("gloo", 3, 3)))
    assert outcome.status == 1
    assert "3 disagree on the members of process group 1" in outcome.err


BY_MEMBERS = """
import torch, torch.distributed as dist
dist.init_process_group("{}")
rank = dist.get_rank()
if rank < 2 or {}:
    group = dist.new_group([0, 1])
others = dist.new_group([2, 3]) if {} else None
total = torch.ones(2)
if rank < 2:
    dist.all_reduce(total, group=group)
"""


@pytest.mark.parametrize("torch", TORCHES)
@pytest.mark.parametrize("another", [False, True])
def test_a_group_that_only_its_members_make(tmp_path: Path, another: bool, torch: str) -> None:
    """Says so where ranks make the next group by the same number; and where there is none, under --check."""
    right = written(tmp_path, BY_MEMBERS.format("gloo", True, another), "right.py")
    wrong = written(tmp_path, BY_MEMBERS.format("gloo", False, another), "wrong.py")
    for flags in ((), ("--check",)):
        of_torch = ("--torch", torch, "--nproc-per-node", "4", *flags)
        outcome = launch(*of_torch, right)
        assert (outcome.status, outcome.err) == (0, "")
        outcome = launch(*of_torch, wrong)
        assert outcome.status == (1 if another or flags else 0), outcome.err
        if another:
            assert "MismatchError: ranks 0 and 2 disagree on the members of process group 1" in outcome.err
            assert "makes it of ranks [0, 1] at " in outcome.err and "wrong.py:6" in outcome.err
            assert "makes it of ranks [2, 3] at " in outcome.err and "wrong.py:7" in outcome.err
        elif flags:
            said = (
                r"rank 2 has ended without making process group 1, as rank [01] does of ranks \[0, 1\] at .*wrong.py:6"
            )
            assert re.search(said, outcome.err)
