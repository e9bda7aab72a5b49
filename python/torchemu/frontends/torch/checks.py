"""Checks of a collective's arguments that a rank can make by itself, in the words of PyTorch's gloo, or of its NCCL."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import NoReturn

import torch
import torch.distributed as dist

from torchemu.frontends.torch.reductions import number

_BITWISE = {int(op): op.name for op in (dist.ReduceOp.BAND, dist.ReduceOp.BOR, dist.ReduceOp.BXOR)}


def refuse(operation: str, text: str, backend: str = "gloo") -> NoReturn:
    """Raises gloo's RuntimeError of an operation, or NCCL's ValueError."""
    if backend == "nccl":
        raise ValueError(f"ProcessGroupNCCL::{operation}: {text}")
    raise RuntimeError(f"ProcessGroupGloo::{operation}: {text}")


def duration(seconds: timedelta | float) -> timedelta:
    """Returns a timeout of which a program may give the seconds only."""
    return seconds if isinstance(seconds, timedelta) else timedelta(seconds=seconds)


def contiguous(tensor: torch.Tensor) -> None:
    """Refuses a tensor with gaps between its rows, or in another order."""
    if not tensor.is_contiguous():
        raise ValueError("Tensors must be contiguous")


def without_gaps(backend: str, tensors: Sequence[torch.Tensor]) -> None:
    """Refuses tensors whose elements are not one after the other, in some order, as NCCL does in collectives."""
    if backend != "nccl":
        return
    for tensor in tensors:
        order = _ORDERS.get(tensor.ndim, torch.contiguous_format)
        if not (tensor.is_contiguous() or tensor.is_contiguous(memory_format=order)):
            raise ValueError("Tensors must be contiguous")


_ORDERS = {4: torch.channels_last, 5: torch.channels_last_3d}


def together(backend: str, tensors: Sequence[torch.Tensor]) -> None:
    """Refuses tensors that NCCL does not reduce as one operation: of several types, or with gaps; any order will do."""
    if backend != "nccl":
        return
    for tensor in tensors:
        if tensor.dtype != tensors[0].dtype:
            raise TypeError("Tensors must have identical type")
        if not _is_dense(tensor):
            raise ValueError("Tensors must be non-overlapping and dense")


def _is_dense(tensor: torch.Tensor) -> bool:
    """Says whether a tensor's elements fill their memory, each with a place of its own."""
    if tensor.is_contiguous():
        return True
    expected = 1
    for stride, length in sorted(zip(tensor.stride(), tensor.shape, strict=True)):
        if length > 1:
            if stride != expected:
                return False
            expected *= length
    return True


def message(backend: str, tensor: torch.Tensor) -> None:
    """Refuses a message of a tensor with gaps between its rows, or in another order, as gloo does."""
    if backend == "gloo" and not tensor.is_contiguous():
        raise RuntimeError("input tensor has to be contiguous")


def root(operation: str, rank: int, size: int, backend: str) -> None:
    """Refuses a root that is not in the group."""
    if not 0 <= rank < size:
        refuse(operation, f"invalid root rank: {rank}", backend)


def reduction(backend: str, op: object) -> None:
    """Refuses a reduction that the backend does not have."""
    if backend == "nccl" and number(op) in _BITWISE:
        raise ValueError(f"Cannot use ReduceOp.{_BITWISE[number(op)]} with NCCL")


def gathered(backend: str, out: torch.Tensor, given: torch.Tensor, size: int) -> None:
    """Refuses a tensor for what all bring, where it does not have as many elements, or those of another type."""
    if backend == "nccl" and out.dtype != given.dtype:
        raise TypeError("output tensor must have the same type as input tensor")
    if out.numel() != given.numel() * size:
        if backend == "gloo":
            alike("allgather", out.chunk(size), given)
        raise _misfit(backend)(
            "output tensor size must be equal to world_size times input tensor size "
            f"(expected {given.numel() * size} elements, got {out.numel()})"
        )
    alike("allgather", [out], given, sizes=False)


def scattered(backend: str, out: torch.Tensor, given: torch.Tensor, size: int) -> None:
    """Refuses a tensor for what is reduced where that does not have as many elements for each rank."""
    if backend == "nccl" and out.dtype != given.dtype:
        raise TypeError("input tensor must be the same type as the output tensor.")
    if out.numel() * size != given.numel():
        raise _misfit(backend)(
            "input tensor must be the same size as output size times world size: "
            f"{out.numel()} × {size} elements, and not {given.numel()}"
        )


def _misfit(backend: str) -> type[Exception]:
    return ValueError if backend == "nccl" else RuntimeError


def not_empty(operation: str, tensors: Sequence[torch.Tensor]) -> None:
    """Refuses an empty list."""
    if not tensors:
        refuse(operation, "requires non-empty tensor list")


def single(operation: str, tensors: Sequence[torch.Tensor], what: str) -> None:
    """Refuses a list that has not one element."""
    if len(tensors) != 1:
        refuse(operation, f"requires a single-element {what} tensor list")


def of_root(backend: str, operation: str, what: str, lists: Sequence[Sequence[torch.Tensor]], size: int) -> None:
    """Refuses what a root gives that is not a list of a tensor for each rank, in a list."""
    if backend == "nccl" and len(lists) != 1:
        refuse(operation, f"requires a single-element {what} list containing a list with {size} tensors.", backend)
    single(operation, lists, what)
    if len(lists[0]) != size:
        refuse(
            operation,
            f"Incorrect {what} list size {len(lists[0])}. {what.capitalize()} list size should be {size}, "
            "same as size of the process group.",
            backend,
        )


def alone(backend: str, tensors: Sequence[torch.Tensor]) -> None:
    """Refuses several tensors of one rank, as NCCL does."""
    if backend == "nccl" and len(tensors) != 1:
        raise RuntimeError(
            "Expecting one tensor only but got multiple. You are probably using multiple devices under one thread."
        )


def as_many(operation: str, what: str, index: int, tensors: Sequence[torch.Tensor], size: int) -> None:
    """Refuses a list that has not a tensor for each rank."""
    if len(tensors) != size:
        refuse(operation, f"invalid {what} tensor list at index {index} (expected length {size}, got {len(tensors)})")


def alike(
    operation: str,
    tensors: Sequence[torch.Tensor],
    model: torch.Tensor,
    sizes: bool = True,
    backend: str = "gloo",
) -> None:
    """Refuses tensors whose type or sizes are not those of a model."""
    for index, tensor in enumerate(tensors):
        if tensor.dtype != model.dtype:
            want, got = _type(model), _type(tensor)
            refuse(operation, f"invalid tensor type at index {index} (expected {want}, got {got})", backend)
        if sizes and tensor.shape != model.shape:
            want, got = (_shape(t) for t in (model, tensor))
            refuse(operation, f"invalid tensor size at index {index} (expected {want}, got {got})", backend)


_C_NAMES = {
    torch.float32: "float",
    torch.float64: "double",
    torch.float16: "c10::Half",
    torch.bfloat16: "c10::BFloat16",
    torch.int64: "long int",
    torch.int32: "int",
    torch.int16: "short int",
    torch.int8: "signed char",
    torch.uint8: "unsigned char",
    torch.bool: "bool",
}


def _type(tensor: torch.Tensor) -> str:
    name = _C_NAMES.get(tensor.dtype, str(tensor.dtype))
    return (
        f"TensorOptions(dtype={name}, device={tensor.device}, layout=Strided, requires_grad=false (default), "
        "pinned_memory=false (default), memory_format=(nullopt))"
    )


def _shape(tensor: torch.Tensor) -> str:
    return "(" + ", ".join(map(str, tensor.shape)) + ")"


def splits(sizes: Sequence[int], tensor: torch.Tensor, size: int) -> None:
    """Refuses the numbers of rows that all_to_all_single is to give to ranks, or to get from them."""
    if not sizes:
        if tensor.dim() == 0 or tensor.shape[0] % size:
            raise RuntimeError("Tensor's dim 0 does not divide equally across group size")
        return
    if len(sizes) != size:
        raise RuntimeError("Number of tensor splits not equal to group size")
    if sum(sizes) != tensor.shape[0]:
        raise RuntimeError("Split sizes doesn't match total dim 0 size")
