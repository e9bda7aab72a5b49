"""Misuse of torch.distributed: the exceptions are those that PyTorch 2.11 raised when it was tried there, on two ranks
with gloo, by type and by the beginning of the message."""

from __future__ import annotations

import re

import pytest
from conftest import ROOT, OpenWorld
from rows import Row, f32, f64, members_only, on_rank_zero

import torchemu as torch
import torchemu.distributed as dist
from torchemu.distributed import P2POp, ReduceOp

RECORDED = ROOT.parent / "shared" / "specs" / "torch_errors_2_11.txt"

NOT_INITIALIZED = "Default process group has not been initialized, please make sure to call init_process_group."

BEFORE_INIT = {
    "uninitialized get_rank": Row(dist.get_rank, ValueError, NOT_INITIALIZED),
    "uninitialized all_reduce": Row(lambda: dist.all_reduce(f32(2)), ValueError, NOT_INITIALIZED),
    "unknown backend": Row(
        lambda: dist.init_process_group("bogus"),
        AssertionError,
        "Unknown backend type bogus",
        (
            UserWarning,
            "Device capability of bogus unknown, assuming `cpu` and `cuda`. You can specify it in `device:backend` "
            "format in `init_process_group` call.",
        ),
    ),
    "bad timeout type": Row(
        lambda: dist.init_process_group("gloo", timeout=5),
        TypeError,
        "Expected timeout argument to be of type datetime.timedelta, got 5",
    ),
}

ON_A_RANK = {
    "double init": Row(
        lambda: dist.init_process_group("gloo"),
        ValueError,
        "trying to initialize the default process group twice!",
    ),
    "all_reduce non tensor": Row(
        lambda: dist.all_reduce([1]),
        TypeError,
        "Invalid function argument. Expected parameter `tensor` of type torch.Tensor\n"
        "             but got <class 'list'> instead.",
    ),
    "all_gather not list": Row(
        lambda: dist.all_gather(f32(2), f32(2)),
        TypeError,
        "Invalid function argument. Expected parameter `tensor_list` of type List[torch.Tensor]\n"
        f"             but got {torch.Tensor} instead.",
    ),
    "all_gather wrong count": Row(
        lambda: dist.all_gather([f32(2)], f32(2)),
        RuntimeError,
        "ProcessGroupGloo::allgather: invalid output tensor list at index 0 (expected length 2, got 1)",
    ),
    "all_gather wrong size": Row(
        lambda: dist.all_gather([f32(3), f32(3)], f32(2)),
        RuntimeError,
        "ProcessGroupGloo::allgather: invalid tensor size at index 0 (expected (2), got (3))",
    ),
    "all_gather mixed dtypes": Row(
        lambda: dist.all_gather([f32(2), f64(2)], f32(2)),
        ValueError,
        "Invalid usage of tensors with different dtypesFound torch.float32 and  torch.float64",
    ),
    "all_gather_into_tensor wrong size": Row(
        lambda: dist.all_gather_into_tensor(f32(5), f32(2)),
        RuntimeError,
        "ProcessGroupGloo::allgather: invalid tensor size at index 0 (expected (2), got (3))",
    ),
    "all_gather_into_tensor wrong dtype": Row(
        lambda: dist.all_gather_into_tensor(f64(4), f32(2)),
        RuntimeError,
        "ProcessGroupGloo::allgather: invalid tensor type at index 0 (expected TensorOptions(dtype=float, device=",
        note="the device is not a CPU",
    ),
    "reduce_scatter_tensor wrong size": Row(
        lambda: dist.reduce_scatter_tensor(f32(3), f32(4)),
        RuntimeError,
        "[rank0]: Check failed: outputShape[0] * worldSize == inputShape[0] (6 vs. 4).",
        note="without the time and the line of a source file",
    ),
    "reduce_scatter wrong count": Row(
        lambda: dist.reduce_scatter(f32(2), [f32(2)]),
        RuntimeError,
        "invalid input tensor list size, must be world size",
    ),
    "all_to_all wrong count": Row(
        lambda: dist.all_to_all([f32(2)], [f32(2)]),
        RuntimeError,
        "Number of tensor splits not equal to group size",
        note="gloo has no all_to_all of lists",
    ),
    "all_to_all_single bad splits": Row(
        lambda: dist.all_to_all_single(f32(4), f32(4), [1, 1], [1, 1]),
        RuntimeError,
        "Split sizes doesn't match total dim 0 size",
    ),
    "all_to_all_single indivisible": Row(
        lambda: dist.all_to_all_single(f32(3), f32(3)),
        ValueError,
        "Tensor's dim 0 does not divide equally across group size",
        note="gloo exchanges halves of elements",
    ),
    "broadcast bad src": Row(
        lambda: dist.broadcast(f32(2), 7), RuntimeError, "ProcessGroupGloo::broadcast: invalid root rank: 7"
    ),
    "broadcast src and group_src": Row(
        lambda: dist.broadcast(f32(2), 0, group_src=0),
        ValueError,
        "Can't specify both group_rank and global_rank",
    ),
    "broadcast neither": Row(lambda: dist.broadcast(f32(2)), ValueError, "Must specify global_rank or group_rank"),
    "reduce bad dst": Row(
        lambda: dist.reduce(f32(2), 9), RuntimeError, "ProcessGroupGloo::reduce: invalid root rank: 9"
    ),
    "gather no list on dst": Row(
        lambda: dist.gather(f32(2), dst=0),
        ValueError,
        "Argument ``gather_list`` must be specified on destination rank.",
    ),
    "scatter no list on src": Row(
        lambda: dist.scatter(f32(2), src=0),
        ValueError,
        "Argument ``scatter_list`` must be specified on source rank.",
    ),
    "send to self": Row(
        lambda: dist.send(f32(2), 0),
        ValueError,
        "Invalid destination rank: destination rank should not be the same as the rank of the current process.",
    ),
    "P2POp bad op": Row(
        lambda: P2POp(dist.send, f32(2), 1),
        ValueError,
        "Invalid ``op``. Expected ``op`` to be of type ``torch.distributed.isend`` or ``torch.distributed.irecv``.",
    ),
    "batch_isend_irecv empty": Row(lambda: dist.batch_isend_irecv([]), IndexError, "list index out of range"),
    "batch_isend_irecv not ops": Row(
        lambda: dist.batch_isend_irecv([1]),
        ValueError,
        "Invalid ``p2p_op_list``. Each op is expected to to be of type ``torch.distributed.P2POp``.",
    ),
    "new_group too many": Row(
        lambda: dist.new_group([0, 1, 2]),
        ValueError,
        "the new group's world size should be less or equal to the world size set by init_process_group",
    ),
    "new_group bad rank": Row(
        lambda: dist.new_group([0, 5]),
        ValueError,
        "The new group's rank should be within the world_size set by init_process_group",
    ),
    "new_subgroups not dividing": Row(
        lambda: dist.new_subgroups(3),
        ValueError,
        "The arg 'group_size' (3) must not exceed the world size (2)",
    ),
    "new_subgroups zero": Row(lambda: dist.new_subgroups(0), ValueError, "The arg 'group_size' (0) must be positive"),
    "new_subgroups_by_enumeration overlap": Row(
        lambda: dist.new_subgroups_by_enumeration([[0, 1], [1]]),
        ValueError,
        "Rank 1 has appeared in both subgroup [0, 1] and [1]",
    ),
    "get_group_rank not member": Row(lambda: dist.get_group_rank(dist.group.WORLD, 7)),
    "get_global_rank not member": Row(lambda: dist.get_global_rank(dist.group.WORLD, 7)),
    "all_reduce avg gloo": Row(lambda: dist.all_reduce(f32(2), ReduceOp.AVG, async_op=True)),
    "all_reduce band float": Row(
        lambda: dist.all_reduce(f32(2), ReduceOp.BAND),
        RuntimeError,
        "Cannot use ReduceOp.BAND with non-integral dtype",
    ),
    "all_reduce op as string": Row(
        lambda: dist.all_reduce(f32(2), "add"),
        TypeError,
        "(): incompatible function arguments. The following argument types are supported:\n    1. ",
        note="names such as 'sum' are taken here",
    ),
    "all_reduce non contiguous": Row(lambda: dist.all_reduce(f32(4, 2)[:, ::2], async_op=True)),
    "barrier bad device_ids": Row(lambda: dist.barrier(device_ids=[99], async_op=True)),
    "get_backend nonsense": Row(
        lambda: dist.get_backend(3),
        ValueError,
        "Process group 3 is not initialized in the world group map. Please initialize the group first.",
    ),
    "destroy unknown": Row(lambda: dist.destroy_process_group(3), ValueError, "Invalid process group specified"),
    "wait on None": Row(
        lambda: dist.all_reduce(f32(2), group=dist.new_group([0])).wait(),
        AttributeError,
        "'NoneType' object has no attribute 'wait'",
    ),
    "all_reduce complex max": Row(
        lambda: dist.all_reduce(f32(2).to(torch.complex64), ReduceOp.MAX),
        ValueError,
        "all_reduce does not support RedOpType.MAX on complex tensors",
    ),
    "ReduceOp repr": Row(lambda: repr(ReduceOp.SUM)),
    "reduce_op alias": Row(
        lambda: dist.reduce_op.SUM,
        warning=(
            FutureWarning,
            "`torch.distributed.reduce_op` is deprecated, please use `torch.distributed.ReduceOp` instead",
        ),
    ),
    "nonmember all_reduce": Row(
        lambda: dist.all_reduce(f32(2), group=members_only()),
        warning=(UserWarning, "Running all_reduce on global rank 0 which does not belong to the given group."),
    ),
    "Work repr": Row(lambda: repr(dist.all_reduce(f32(2), async_op=True))),
    "nonmember get_rank": Row(lambda: dist.get_rank(members_only())),
    "nonmember get_backend": Row(
        lambda: dist.get_backend(members_only()), ValueError, "Invalid process group specified"
    ),
    "nonmember recv": Row(
        lambda: dist.recv(f32(2), 1, group=members_only()),
        warning=(UserWarning, "Running irecv on global rank 0 which does not belong to the given group."),
    ),
    "nonmember broadcast src in group": Row(
        lambda: dist.broadcast(f32(2), 1, group=members_only()),
        warning=(UserWarning, "Running broadcast on global rank 0 which does not belong to the given group."),
    ),
}

ELSEWHERE = {
    "all_reduce sparse layout max": "there are no sparse tensors",
    "all_reduce requires_grad": "there is no autograd",
    "P2POp mixed groups": "test_dist_p2p.py",
    "init_device_mesh wrong size": "there is no DeviceMesh",
    "monitored_barrier ok": "test_dist_barriers.py",
}
"""Rows that are not misuse of what there is, or are tested in other files."""


@pytest.mark.parametrize("name", BEFORE_INIT)
def test_before_init(open_world: OpenWorld, name: str) -> None:
    open_world("sips2")
    on_rank_zero(BEFORE_INIT[name], init=False)


@pytest.mark.parametrize("name", ON_A_RANK)
def test_as_recorded(open_world: OpenWorld, name: str) -> None:
    open_world("sips2")
    on_rank_zero(ON_A_RANK[name])


def recorded() -> dict[str, str]:
    """The recorded rows: name → what came of it. The file is no part of this project."""
    if not RECORDED.is_file():
        pytest.skip(f"the record is not there: {RECORDED}")
    lines = [line for line in RECORDED.read_text().splitlines()[1:] if not line.startswith(" ")]
    return dict(line.split(": ", 1) for line in lines)


def test_every_recorded_row_is_tested() -> None:
    assert set(recorded()) == {*BEFORE_INIT, *ON_A_RANK, *ELSEWHERE}


def test_rows_are_as_recorded() -> None:
    rows = {**BEFORE_INIT, **ON_A_RANK}
    for name, outcome in recorded().items():
        row = rows.get(name)
        if row is None or row.note:
            continue
        if row.error is None:
            assert outcome.startswith("returned"), name
            continue
        kind, text = re.fullmatch(r"(\w+) \(.*?\): (.*)", outcome).groups()
        beginning = row.text.replace(str(torch.Tensor), "<class 'torch.Tensor'>").replace("\n", " | ")
        assert kind == row.error.__name__, name
        assert re.sub(r"\s+", " ", text).startswith(re.sub(r"\s+", " ", beginning)), name
