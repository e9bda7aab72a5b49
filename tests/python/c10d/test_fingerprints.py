"""Tests of what a mismatch says at the debug level DETAIL: PyTorch's words, as recorded from 2.11 with gloo, then ours.

PyTorch takes the fingerprint of a tensor with more or fewer dimensions for another operation's; then these texts tell
the truth instead.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from conftest import OpenWorld
from ranks import failures
from rows import f32, f64

import torchemu as torch
import torchemu.distributed as dist
from torchemu.errors import MismatchError

OPTIONS = (
    "TensorOptions(dtype=float (default), device=ahbm, layout=Strided (default), requires_grad=false (default), "
    "pinned_memory=false (default), memory_format=(nullopt))"
)


def of(operation: str, shape: str | None = None, kinds: str = "Float", number: int = 0) -> str:
    """A fingerprint's text, of an operation that has no tensors without a shape."""
    if shape is None:
        return f"CollectiveFingerPrint(SequenceNumber={number}OpType={operation})"
    devices = " ".join(OPTIONS for _ in kinds.split())
    return (
        f"CollectiveFingerPrint(SequenceNumber={number}, OpType={operation}, TensorShape=[{shape}], "
        f"TensorDtypes={kinds}, TensorDeviceTypes={devices})"
    )


BARRIER = of("BARRIER")
ROWS: dict[str, tuple[Callable[[int], Any], str, str, str]] = {
    "operations": (
        lambda r: dist.all_reduce(f32(2)) if r else dist.broadcast(f32(2), 0),
        of("BROADCAST", "2"),
        of("ALLREDUCE", "2"),
        "  Op type: BROADCASTvs ALLREDUCE",
    ),
    "sizes": (
        lambda r: dist.all_reduce(f32(2 + r, 3)),
        of("ALLREDUCE", "2, 3"),
        of("ALLREDUCE", "3, 3"),
        "  Tensor Tensor shapes: 2 3vs 3 3",
    ),
    "dtypes": (
        lambda r: dist.all_reduce(torch.zeros(2, dtype=[torch.bfloat16, torch.int16][r])),
        of("ALLREDUCE", "2", "BFloat16"),
        of("ALLREDUCE", "2", "Short"),
        "  Tensor Tensor dtypes: BFloat16vs Short",
    ),
    "float8": (
        lambda r: dist.broadcast(torch.zeros(2, dtype=[torch.float8_e4m3fn, torch.float8_e5m2][r]), 0),
        of("BROADCAST", "2", "Float8_e4m3fn"),
        of("BROADCAST", "2", "Float8_e5m2"),
        "  Tensor Tensor dtypes: Float8_e4m3fnvs Float8_e5m2",
    ),
    "complex": (
        lambda r: dist.broadcast(torch.zeros(2, dtype=[torch.complex64, torch.complex128][r]), 0),
        of("BROADCAST", "2, 2", "Float"),
        of("BROADCAST", "2, 2", "Double"),
        "  Tensor Tensor dtypes: Floatvs Double",
    ),
    "sizes and dtypes": (
        lambda r: dist.all_reduce([f32, f64][r](2 + r)),
        of("ALLREDUCE", "2"),
        of("ALLREDUCE", "3", "Double"),
        "  Tensor Tensor shapes: 2vs 3  Tensor Tensor dtypes: Floatvs Double",
    ),
    "no dimensions": (
        lambda r: dist.all_reduce(f32() if r else f32(2)),
        of("ALLREDUCE", "2"),
        of("ALLREDUCE", ""),
        "  Tensor Tensor shapes: 2vs ",
    ),
    "empty": (
        lambda r: dist.all_reduce(f32(0) if r else f32(2)),
        of("ALLREDUCE", "2"),
        of("ALLREDUCE", "0"),
        "  Tensor Tensor shapes: 2vs 0",
    ),
    "barrier": (
        lambda r: dist.all_reduce(f32(1)) if r else dist.barrier(),
        BARRIER,
        of("ALLREDUCE", "1"),
        f"  Op type: BARRIERvs ALLREDUCE  Tensor Tensor shapes: vs 1  Tensor Tensor dtypes: vs Float"
        f"  Tensor Tensor devices: vs {OPTIONS}",
    ),
    "later": (
        lambda r: (dist.barrier(), dist.barrier(), dist.all_reduce(f32(2 + r))),
        of("ALLREDUCE", "2", number=2),
        of("ALLREDUCE", "3", number=2),
        "  Tensor Tensor shapes: 2vs 3",
    ),
    "kinds of all_gather": (
        lambda r: dist.all_gather([f32(2), f32(2)], f32(2)) if r else dist.all_gather_into_tensor(f32(4), f32(2)),
        of("_ALLGATHER_BASE", "2"),
        of("ALLGATHER", "2"),
        "  Op type: _ALLGATHER_BASEvs ALLGATHER",
    ),
    "all_gather": (
        lambda r: dist.all_gather([f32(2 + r), f32(2 + r)], f32(2 + r)),
        of("ALLGATHER", "2"),
        of("ALLGATHER", "3"),
        "  Tensor Tensor shapes: 2vs 3",
    ),
    "reduce_scatter": (
        lambda r: dist.reduce_scatter(f32(2 + r), [f32(2 + r), f32(2 + r)]),
        of("REDUCE_SCATTER", "2"),
        of("REDUCE_SCATTER", "3"),
        "  Tensor Tensor shapes: 2vs 3",
    ),
    "reduce_scatter_tensor": (
        lambda r: dist.reduce_scatter_tensor(f32(2 + r), f32(4 + 2 * r)),
        of("_REDUCE_SCATTER_BASE", "4", "Float Float"),
        of("_REDUCE_SCATTER_BASE", "6", "Float Float"),
        "  Tensor Tensor shapes: 4vs 6",
    ),
    "reduce": (
        lambda r: dist.reduce(f32(2 + r), 0),
        of("REDUCE", "2"),
        of("REDUCE", "3"),
        "  Tensor Tensor shapes: 2vs 3",
    ),
    "gather": (
        lambda r: dist.reduce(f32(2), 0) if r else dist.gather(f32(2), [f32(2), f32(2)], 0),
        of("GATHER", "2"),
        of("REDUCE", "2"),
        "  Op type: GATHERvs REDUCE",
    ),
    "scatter": (
        lambda r: dist.broadcast(f32(2), 0) if r else dist.scatter(f32(2), [f32(2), f32(2)], 0),
        of("SCATTER", "2"),
        of("BROADCAST", "2"),
        "  Op type: SCATTERvs BROADCAST",
    ),
    "objects": (
        lambda r: dist.broadcast_object_list([0] * (r + 1), 0),
        of("BROADCAST", "1", "Long"),
        of("BROADCAST", "2", "Long"),
        "  Tensor Tensor shapes: 1vs 2",
    ),
    "lists of objects": (
        lambda r: dist.all_gather_object([0, 0], 1) if r else dist.broadcast_object_list([0, 0], 0),
        of("BROADCAST", "2", "Long"),
        of("ALLGATHER", "1", "Long"),
        "  Op type: BROADCASTvs ALLGATHER  Tensor Tensor shapes: 2vs 1",
    ),
    "all_to_all": (
        lambda r: dist.all_to_all([f32(1), f32(1)], [f32(1), f32(1)]) if r else dist.barrier(),
        BARRIER,
        of("ALLTOALL"),
        "  Op type: BARRIERvs ALLTOALL",
    ),
    "all_to_all_single": (
        lambda r: dist.all_to_all_single(f32(2), f32(2)) if r else dist.barrier(),
        BARRIER,
        of("ALLTOALL_BASE"),
        "  Op type: BARRIERvs ALLTOALL_BASE",
    ),
}
"""Calls of ranks 0 and 1; the fingerprints of both; and in which aspects rank 0 says that they differ."""

WITHOUT_TENSORS = {"barrier": {0}, "objects": {0, 1}, "lists of objects": {0, 1}}
"""Which ranks have given no group a tensor by then: they know of the host's memory only."""


def failed(world: int, call: Callable[[int], Any], level: str) -> dict[int, str]:
    """Returns what the ranks say, whose debug level is set first."""

    def program(rank: int) -> None:
        dist.set_debug_level(dist.DebugLevel[level])
        dist.init_process_group()
        call(rank)
        dist.barrier()

    found = failures(world, program)
    assert all(type(error) is MismatchError for error in found.values())
    return {rank: str(error) for rank, error in found.items()}


@pytest.mark.parametrize("name", ROWS)
def test_fingerprints(open_world: OpenWorld, name: str) -> None:
    """Each rank names its own call first, and then both of them with their places in the program."""
    open_world("sips2")
    call, first, second, aspects = ROWS[name]
    texts = failed(2, call, "DETAIL")
    begin, between = "Detected mismatch between collectives on ranks. Rank ", " is running collective: "
    end = ".Collectives differ in the following aspects: "
    wanted = [
        f"{begin}0{between}{first}, but Rank 1{between}{second}{end}{aspects}\nranks 0 and 1 disagree on the ",
        f"{begin}1{between}{second}, but Rank 0{between}{first}{end}",
    ]
    for rank, text in enumerate(wanted):
        place = "cpu" if rank in WITHOUT_TENSORS.get(name, ()) else "ahbm"
        assert texts[rank].startswith(text.replace("device=ahbm", f"device={place}"))
    assert all(text.count(f"{__file__}:") == 2 for text in texts.values())


@pytest.mark.parametrize("place", ["cpu", "cuda"])
def test_devices_are_called_as_the_program_does(open_world: OpenWorld, place: str) -> None:
    open_world("sips2")
    texts = failed(2, lambda r: dist.all_reduce(torch.zeros(2 + r, device=place)), "DETAIL")
    assert all(text.count(f"device={place}, layout") == 2 for text in texts.values())


@pytest.mark.parametrize("level", ["OFF", "INFO"])
def test_without_them(open_world: OpenWorld, level: str) -> None:
    open_world("sips2")
    for text in failed(2, lambda r: dist.all_reduce(f32(2 + r)), level).values():
        assert text.startswith("ranks 0 and 1 disagree on the number of elements in collective #0")
        assert "FingerPrint" not in text and "\x1f" not in text


@pytest.mark.parametrize(
    "call",
    [
        lambda r: dist.all_reduce(f32(2), [dist.ReduceOp.SUM, dist.ReduceOp.MAX][r]),
        lambda r: dist.broadcast(f32(2), r),
    ],
)
def test_what_pytorch_does_not_compare(open_world: OpenWorld, call: Callable[[int], Any]) -> None:
    """Reduce ops and roots: there is nothing that PyTorch would say."""
    open_world("sips2")
    for text in failed(2, call, "DETAIL").values():
        assert text.startswith("ranks 0 and 1 disagree on the r")


def test_ranks_of_a_subgroup(open_world: OpenWorld) -> None:
    """PyTorch's part has the group's numbers, and a rank that agrees with one of the two hears of these."""
    open_world("default")

    def call(rank: int) -> None:
        group = dist.new_group([1, 2, 3])
        if rank:
            dist.all_reduce(f32(2 + (rank == 3)), group=group)
            dist.barrier(group)

    texts = failed(4, call, "DETAIL")
    assert "Rank 2 is running collective: " + of("ALLREDUCE", "3") in texts[3]
    assert texts[3].startswith("Detected mismatch between collectives on ranks. Rank 2 is running ")
    for rank in (1, 2):
        assert "\nranks 1 and 3 disagree on the number of elements" in texts[rank]
