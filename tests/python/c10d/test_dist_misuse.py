"""Misuse of torch.distributed besides what was recorded from PyTorch: ranks outside of a group, wrong arguments."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from conftest import OpenWorld
from ranks import failures, on_ranks
from rows import Row, f32, f64, members_only, on_rank_zero

import torchemu as torch
import torchemu.distributed as dist
from torchemu.distributed import GroupMember, ReduceOp, distributed_c10d
from torchemu.errors import MismatchError

COALESCED = (
    FutureWarning,
    "`torch.distributed.all_reduce_coalesced` will be deprecated. If you must use it, please revisit our documentation "
    "later at https://pytorch.org/docs/main/distributed.html#collective-functions",
)

ROWS = {
    "all_gather list of other things": Row(
        lambda: dist.all_gather([1, 2], f32(2)),
        TypeError,
        "Invalid function argument. Expected parameter `tensor_list` of type List[torch.Tensor]\n"
        "             but got <class 'list'> with elements of type [<class 'int'>, <class 'int'>].",
    ),
    "all_gather_into_tensor too few rows": Row(
        lambda: dist.all_gather_into_tensor(f32(1), f32(2)),
        RuntimeError,
        "ProcessGroupGloo::allgather: invalid output tensor list at index 0 (expected length 2, got 1)",
    ),
    "all_gather_into_tensor other rows": Row(
        lambda: dist.all_gather_into_tensor(f32(4, 3), f32(2, 2)),
        RuntimeError,
        "ProcessGroupGloo::allgather: invalid tensor size at index 0 (expected (2, 2), got (2, 3))",
    ),
    "broadcast from a text": Row(lambda: dist.broadcast(f32(2), "0"), TypeError, "a rank must be an integer, not '0'"),
    "reduce to half a rank": Row(
        lambda: dist.reduce(f32(2), group_dst=0.5), TypeError, "a rank must be an integer, not 0.5"
    ),
    "send to a text": Row(lambda: dist.send(f32(2), "1"), TypeError, "a rank must be an integer, not '1'"),
    "receive from a text": Row(lambda: dist.irecv(f32(2), "1"), TypeError, "a rank must be an integer, not '1'"),
    "objects from a text": Row(
        lambda: dist.broadcast_object_list([1], "0"), TypeError, "a rank must be an integer, not '0'"
    ),
    "tag that is a text": Row(lambda: dist.send(f32(2), 1, tag="a"), TypeError, "tag must be an integer, not 'a'"),
    "tag that is too large": Row(
        lambda: dist.send(f32(2), 1, tag=1 << 63), RuntimeError, "Tag must fit 64 bits, not 9223372036854775808"
    ),
    "group of texts": Row(
        lambda: dist.new_group("01"), TypeError, "a rank of the new group must be an integer, not '0'"
    ),
    "group of fractions": Row(
        lambda: dist.new_group([0.0]), TypeError, "a rank of the new group must be an integer, not 0.0"
    ),
    "splits that are texts": Row(
        lambda: dist.all_to_all_single(f32(2), f32(2), ["1", "1"]),
        TypeError,
        "a split size must be an integer, not '1'",
    ),
    "splits that are fractions": Row(
        lambda: dist.all_to_all_single(f32(2), f32(2), None, [1.0, 1.0]),
        TypeError,
        "a split size must be an integer, not 1.0",
    ),
    "reduce_scatter wrong size": Row(
        lambda: dist.reduce_scatter(f32(2), [f32(3), f32(2)]),
        RuntimeError,
        "ProcessGroupGloo::reduce_scatter: invalid tensor size at index 0 (expected (2), got (3))",
    ),
    "reduce_scatter_tensor wrong dtype": Row(
        lambda: dist.reduce_scatter_tensor(f64(2), f32(4)),
        TypeError,
        "input tensor must be the same type as the output tensor",
    ),
    "gather wrong count": Row(
        lambda: dist.gather(f32(2), [f32(2)], 0),
        RuntimeError,
        "ProcessGroupGloo::gather: Incorrect output list size 1. Output list size should be 2, same as size of the",
    ),
    "gather list elsewhere": Row(
        lambda: dist.gather(f32(2), [f32(2), f32(2)], 1),
        ValueError,
        "Argument ``gather_list`` must NOT be specified on non-destination ranks.",
    ),
    "gather of objects without a list": Row(
        lambda: dist.gather_object(1), ValueError, "Argument ``gather_list`` must be specified on destination rank."
    ),
    "scatter wrong count": Row(
        lambda: dist.scatter(f32(2), [f32(2)], 0),
        RuntimeError,
        "ProcessGroupGloo::scatter: Incorrect input list size 1. Input list size should be 2, same as size of the",
    ),
    "scatter wrong size": Row(
        lambda: dist.scatter(f32(2), [f32(3), f32(2)], 0),
        RuntimeError,
        "ProcessGroupGloo::scatter: invalid tensor size at index 0 (expected (2), got (3))",
    ),
    "scatter list elsewhere": Row(
        lambda: dist.scatter(f32(2), [f32(2), f32(2)], 1),
        ValueError,
        "Argument ``scatter_list`` must NOT be specified on non-source ranks.",
    ),
    "scatter of objects into nothing": Row(
        lambda: dist.scatter_object_list([], [1, 2]),
        ValueError,
        "Expected argument scatter_object_output_list to be a list of size at least 1.",
    ),
    "all_to_all_single splits for another size": Row(
        lambda: dist.all_to_all_single(f32(3), f32(3), [1, 1, 1], [1, 1, 1]),
        RuntimeError,
        "Number of tensor splits not equal to group size",
    ),
    "all_to_all_single negative splits": Row(
        lambda: dist.all_to_all_single(f32(2), f32(2), [3, -1], [1, 1]),
        RuntimeError,
        "Split sizes doesn't match total dim 0 size",
    ),
    "all_to_all_single of a scalar": Row(
        lambda: dist.all_to_all_single(f32(), f32()),
        ValueError,
        "Tensor's dim 0 does not divide equally across group size",
    ),
    "reduce_scatter bxor of floats": Row(
        lambda: dist.reduce_scatter(f32(2), [f32(2), f32(2)], ReduceOp.BXOR),
        RuntimeError,
        "Cannot use ReduceOp.BXOR with non-integral dtype",
    ),
    "premul_sum without a factor": Row(
        lambda: dist.all_reduce(f32(2), ReduceOp.PREMUL_SUM), ValueError, "PREMUL_SUM needs a factor"
    ),
    "premul_sum of integers": Row(
        lambda: dist.all_reduce(torch.zeros(2, dtype="int32"), dist._make_nccl_premul_sum(2)),
        RuntimeError,
        "PreMulSum Data type must be half, float, bfloat16 or double",
    ),
    "all_reduce_coalesced of nothing": Row(
        lambda: dist.all_reduce_coalesced([]),
        ValueError,
        "all_reduce_coalesced requires non-empty tensor list",
        COALESCED,
    ),
    "all_reduce_coalesced of two dtypes": Row(
        lambda: dist.all_reduce_coalesced([f32(2), f64(2)]),
        ValueError,
        "Invalid usage of tensors with different dtypes",
        COALESCED,
    ),
    "tensor on another device": Row(
        lambda: dist.all_reduce(torch.zeros(2, device=1)),
        ValueError,
        "`tensor` is on device",
    ),
    "broadcast from a rank outside of the group": Row(
        lambda: dist.broadcast(f32(2), 1, group=dist.new_group([0])), ValueError, "Global rank 1 is not part of group "
    ),
    "recv from self": Row(
        lambda: dist.recv(f32(2), 0),
        ValueError,
        "Invalid source rank: source rank should not be the same as the rank of the current process.",
    ),
    "send to nobody": Row(lambda: dist.send(f32(2), 7), ValueError, "Invalid destination rank 7: "),
    "isend to nobody": Row(lambda: dist.isend(f32(2), -1), ValueError, "Invalid destination rank -1: "),
    "irecv from nobody": Row(lambda: dist.irecv(f32(2), 2), ValueError, "Invalid source rank 2: "),
    "recv from rank -1": Row(lambda: dist.recv(f32(2), -1), ValueError, "Invalid source rank -1: "),
    "send with a negative tag": Row(lambda: dist.send(f32(2), 1, tag=-1), RuntimeError, "Tag must be nonnegative"),
    "get_group_rank without a group": Row(
        lambda: dist.get_group_rank(3, 0),
        ValueError,
        "Group 3 is not registered, please create group with torch.distributed.new_group API",
    ),
    "get_group_rank of an outsider": Row(
        lambda: dist.get_group_rank(dist.new_group([0]), 1), ValueError, "Global rank 1 is not part of group "
    ),
    "get_global_rank of nobody": Row(
        lambda: dist.get_global_rank(dist.new_group([0]), 1), ValueError, "Group rank 1 is not part of group "
    ),
    "new_group with a rank twice": Row(
        lambda: dist.new_group([0, 0]), ValueError, "ranks list must not contain duplicate entries, got [0, 0]"
    ),
    "new_group with a wrong timeout": Row(
        lambda: dist.new_group([0], timeout=3),
        TypeError,
        "Expected timeout argument to be of type datetime.timedelta, got 3",
    ),
    "new_subgroups_by_enumeration of nothing": Row(
        lambda: dist.new_subgroups_by_enumeration([]),
        ValueError,
        "The arg 'ranks_per_subgroup_list' cannot be empty",
    ),
    "split_group without ranks": Row(dist.split_group, ValueError, "split_ranks cannot be None or empty"),
    "split_group with an empty part": Row(
        lambda: dist.split_group(split_ranks=[[]]), ValueError, "the split group cannot be empty"
    ),
    "split_group with a rank twice": Row(
        lambda: dist.split_group(split_ranks=[[0, 0]]), ValueError, "the split group cannot have duplicate ranks"
    ),
    "split_group with too many ranks": Row(
        lambda: dist.split_group(split_ranks=[[0, 1, 2]]), ValueError, "the split group's size should be less or equal"
    ),
    "shrink_group by nothing": Row(lambda: dist.shrink_group([]), ValueError, "ranks_to_exclude cannot be empty"),
    "shrink_group by all": Row(
        lambda: dist.shrink_group([0, 1]), ValueError, "Cannot exclude all 2 ranks from process group"
    ),
    "shrink_group by oneself": Row(
        lambda: dist.shrink_group([0]), RuntimeError, "Current rank 0 is in the exclusion list"
    ),
    "shrink_group by nobody": Row(
        lambda: dist.shrink_group([5]), ValueError, "Rank 5 at index 0 is out of bounds for group size 2"
    ),
    "shrink_group by a number": Row(
        lambda: dist.shrink_group(1), TypeError, "ranks_to_exclude must be a list, but got int"
    ),
    "nested coalescing": Row(
        lambda: coalesced_twice(), ValueError, "ProcessGroup has non-empty op list at the start of coalescing"
    ),
    "IllegalWork": Row(lambda: illegal_work(), ValueError, "Illegal to call wait on IllegalWork object"),
    "barrier with one device id": Row(
        lambda: dist.barrier(device_ids=3), TypeError, "Invalid function argument: device_ids type should be List[int]"
    ),
    "monitored_barrier with a wrong timeout": Row(
        lambda: dist.monitored_barrier(timeout=3), TypeError, "Expected timeout argument to be of type"
    ),
    "wait with a wrong timeout": Row(
        lambda: dist.all_reduce(f32(2), async_op=True).wait(3), TypeError, "Expected timeout argument to be of type"
    ),
    "no such group name": Row(
        lambda: distributed_c10d._resolve_process_group("77"),
        RuntimeError,
        "Could not resolve the process group registered under the name",
    ),
    "a group that was destroyed": Row(lambda: after_destroy(), ValueError, "Invalid process group specified"),
    "nonmember get_world_size": Row(lambda: dist.get_world_size(members_only())),
    "nonmember destroy": Row(lambda: dist.destroy_process_group(members_only())),
}


def coalesced_twice() -> None:
    with dist._coalescing_manager(), dist._coalescing_manager():
        pass


def illegal_work() -> None:
    try:
        with dist._coalescing_manager():
            dist.all_reduce(f32(2), async_op=True).wait()
    finally:
        assert dist.group.WORLD.coalescing is None


def after_destroy() -> None:
    group = dist.new_group([0])
    dist.destroy_process_group(group)
    dist.all_reduce(f32(2), group=group)


@pytest.mark.parametrize("name", ROWS)
def test_misuse(open_world: OpenWorld, name: str) -> None:
    open_world("sips2")
    on_rank_zero(ROWS[name])


def outside(call: Callable[[], Any]) -> tuple[Any, str]:
    """Returns what a call on a rank that is not in the group returns, and what it is called in the warning."""
    with pytest.warns(
        UserWarning, match=r"Running \w+ on global rank 0 which does not belong to the given group"
    ) as caught:
        answer = call()
    assert [w.filename for w in caught] == [__file__]
    return answer, str(caught[0].message).split()[1]


def test_outsiders_are_warned(open_world: OpenWorld) -> None:
    open_world("sips2")

    def program(rank: int) -> None:
        dist.init_process_group()
        group = members_only()
        if rank == 1:
            assert isinstance(group, dist.ProcessGroup)
            return
        assert group == GroupMember.NON_GROUP_MEMBER == -100
        one, many = f32(2), [f32(2), f32(2)]
        for name, call in {
            "all_reduce": lambda: dist.all_reduce(one, group=group),
            "reduce": lambda: dist.reduce(one, 1, group=group),
            "reduce_scatter": lambda: dist.reduce_scatter(one, many, group=group),
            "reduce_scatter_tensor": lambda: dist.reduce_scatter_tensor(one, f32(4), group=group),
            "broadcast": lambda: dist.broadcast(one, 1, group=group, async_op=True),
            "all_gather": lambda: dist.all_gather(many, one, group=group),
            "all_gather_into_tensor": lambda: dist.all_gather_into_tensor(f32(4), one, group=group),
            "gather": lambda: dist.gather(one, many, 0, group=group),
            "scatter": lambda: dist.scatter(one, many, 0, group=group),
            "all_to_all": lambda: dist.all_to_all(many, many, group=group),
            "all_to_all_single": lambda: dist.all_to_all_single(one, one, group=group),
            "barrier": lambda: dist.barrier(group),
            "monitored_barrier": lambda: dist.monitored_barrier(group),
            "send": lambda: dist.send(one, 1, group=group),
            "isend": lambda: dist.isend(one, 1, group=group),
            "irecv": lambda: dist.irecv(one, group=group),
            "all_gather_object": lambda: dist.all_gather_object([0], 1, group=group),
            "gather_object": lambda: dist.gather_object(1, group=group),
            "broadcast_object_list": lambda: dist.broadcast_object_list([0], group=group),
            "scatter_object_list": lambda: dist.scatter_object_list([0], group=group),
            "send_object_list": lambda: dist.send_object_list([0], 1, group=group),
        }.items():
            assert outside(call) == (None, name)
        assert outside(lambda: dist.recv(one, group=group)) == (-1, "irecv")
        assert outside(lambda: dist.recv_object_list([0], group=group)) == (-1, "recv_object_list")
        assert dist.get_rank(group) == dist.get_world_size(group) == -1

    on_ranks(2, program)


@pytest.mark.parametrize(
    ("arguments", "error", "text"),
    [
        ({"store": "s", "init_method": "env://"}, AssertionError, "Cannot specify both init_method and store."),
        ({"store": "s"}, AssertionError, "world_size must be positive if using store"),
        ({"store": "s", "world_size": 2}, AssertionError, "rank must be non-negative if using store"),
        (
            {"init_method": "env://"},
            ValueError,
            "Error initializing torch.distributed using env:// rendezvous: environment variable RANK expected, but not",
        ),
        ({"backend": "mpi"}, RuntimeError, "Distributed package doesn't have MPI built in."),
        ({"backend": "ucc"}, RuntimeError, "Distributed package doesn't have UCC built in"),
        ({"backend": "cpu:gloo,cpu:nccl"}, ValueError, "Duplicate device type cpu"),
        ({"backend": "cpu:gloo:x"}, ValueError, "Invalid device:backend pairing: cpu:gloo:x"),
        ({"backend": 3}, ValueError, "Backend constructor parameter must be string-ish"),
    ],
)
def test_wrong_init(
    open_world: OpenWorld, monkeypatch: pytest.MonkeyPatch, arguments: Any, error: type[Exception], text: str
) -> None:
    open_world("sips2")
    monkeypatch.delenv("RANK", raising=False)
    monkeypatch.delenv("WORLD_SIZE", raising=False)

    def program(rank: int) -> None:
        with pytest.raises(error) as raised:
            dist.init_process_group(**arguments)
        assert type(raised.value) is error and str(raised.value).startswith(text)
        assert not dist.is_initialized()

    on_ranks(2, program)


def test_monitored_barrier_is_not_for_nccl(open_world: OpenWorld) -> None:
    open_world("sips2")

    def program(rank: int) -> None:
        dist.init_process_group("nccl", timeout=timedelta(seconds=1))
        with pytest.raises(ValueError, match=r"monitored_barrier is only implemented for GLOO backend\."):
            dist.monitored_barrier()

    on_ranks(2, program)


def test_wrong_sizes_with_nccl(open_world: OpenWorld) -> None:
    open_world("sips2")

    def program(rank: int) -> None:
        dist.init_process_group("nccl")
        for call, error, text in (
            (
                lambda: dist.all_gather_into_tensor(f32(3), f32(2)),
                ValueError,
                "output tensor size must be equal to wor",
            ),
            (
                lambda: dist.all_gather_into_tensor(f64(4), f32(2)),
                TypeError,
                "output tensor must have the same type as",
            ),
            (
                lambda: dist.reduce_scatter_tensor(f32(3), f32(4)),
                ValueError,
                "input tensor must be the same size as out",
            ),
            (
                lambda: dist.reduce_scatter_tensor(f64(2), f32(4)),
                TypeError,
                "input tensor must be the same type as the",
            ),
        ):
            with pytest.raises(error, match=f"^{text}"):
                call()

    on_ranks(2, program)


@pytest.mark.parametrize(
    "call",
    [
        lambda r: dist.all_gather([f32(2), f32(3 - r)] if r == 0 else [f32(2), f32(2)], f32(2)),
        lambda r: dist.all_to_all([f32(1), f32(1 + (r == 0))], [f32(1), f32(1)]),
        lambda r: dist.all_to_all_single(f32(3), f32(3), [1, 2], [1, 2]),
        lambda r: dist.gather(f32(2), [f32(2), f32(1)] if r == 0 else None, 0),
        lambda r: dist.scatter(f32(2), [f32(2), f32(1)] if r == 0 else None, 0),
        lambda r: dist.broadcast(f32(2), r),
        lambda r: dist.reduce(f32(2), 0, [ReduceOp.SUM, ReduceOp.MAX][r]),
        lambda r: dist.all_reduce(f32(2), [ReduceOp.SUM, dist._make_nccl_premul_sum(2)][r]),
        lambda r: [dist.broadcast, dist.reduce][r](f32(2), 0),
        lambda r: dist.reduce_scatter_tensor([f32, f64][r](1), [f32, f64][r](2)),
        lambda r: dist.all_gather_object([0, 0], 1) if r else dist.barrier(),
    ],
)
def test_ranks_that_do_not_fit_together(open_world: OpenWorld, call: Callable[[int], Any]) -> None:
    """All of them learn it, however they wait."""
    open_world("sips2")

    def program(rank: int) -> None:
        dist.init_process_group()
        call(rank)
        dist.barrier()

    found = failures(2, program)
    assert set(found) == {0, 1}
    for error in found.values():
        assert type(error) is MismatchError
        assert all(f"rank {r} calls " in str(error) for r in (0, 1)) and __file__ in str(error)
