"""Functions that are called for operations that have ended."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from conftest import OpenWorld
from ranks import on_ranks

import torchemu as torch
import torchemu.distributed as dist
from torchemu._C._distributed_c10d import OpType, WorkInfo


@pytest.fixture(autouse=True)
def world(open_world: OpenWorld) -> torch.World:
    return open_world("sips8")


def test_each_operation_is_told_of_once_in_order() -> None:
    def program(rank: int) -> Any:
        dist.init_process_group("nccl")
        group, found = dist.group.WORLD, list[WorkInfo]()
        assert group is not None
        group._register_on_completion_hook(found.append)
        t = torch.ones(1024)
        work = dist.all_reduce(t, async_op=True)
        dist.broadcast(t, 0)
        dist.all_gather_into_tensor(torch.empty(3 * 1024), t)
        at_first = len(found)
        assert work is not None
        work.wait()
        t.sum().item()
        if rank < 2:
            (dist.send if rank == 0 else dist.recv)(t, 1 - rank)
        before_leaving = len(found)
        duration = work._get_duration()
        dist.destroy_process_group()
        return at_first, before_leaving, [(w.op_type.name, w.seq) for w in found], found, duration

    for rank, (at_first, before_leaving, told, found, duration) in enumerate(on_ranks(3, program)):
        kinds = [("ALLREDUCE", 0), ("BROADCAST", 1), ("_ALLGATHER_BASE", 2), *([("SEND", 0), ("RECV", 0)][rank:][:1])]
        assert (at_first, told) == (0, kinds)
        assert before_leaving == (3 if rank < 2 else 0)
        assert abs(found[0].active_duration - timedelta(milliseconds=duration)) <= timedelta(microseconds=1)
        assert all(w.time_started <= w.time_finished for w in found)
        assert [w.time_started for w in found] == sorted(w.time_started for w in found)


def test_subgroups_have_functions_of_their_own() -> None:
    def program(rank: int) -> Any:
        dist.init_process_group("nccl")
        group, found = dist.new_group([0, 1]), list[OpType]()
        group._register_on_completion_hook(lambda work: found.append(work.op_type))
        dist.all_reduce(torch.ones(1))
        dist.barrier(group)
        dist.destroy_process_group()
        return found

    assert on_ranks(2, program) == [[OpType.BARRIER]] * 2


def test_waiting_and_misuse() -> None:
    def program(rank: int) -> Any:
        dist.init_process_group("nccl")
        group, found = dist.group.WORLD, []
        assert group is not None
        group._wait_for_pending_works()
        group._register_on_completion_hook(found.append)
        with pytest.raises(dist.DistBackendError, match="OnCompletion hook already registered"):
            group._register_on_completion_hook(found.append)
        dist.all_reduce(torch.ones(1))
        group._wait_for_pending_works()
        told = len(found)
        host = dist.new_group([0, 1], backend="gloo")
        with pytest.raises(
            RuntimeError, match="Only ProcessGrouppNCCL supports onCompletion hook, but got gloo backend"
        ):
            host._register_on_completion_hook(found.append)
        return told

    assert on_ranks(2, program) == [1, 1]
