"""Checks of a collective's arguments that a rank can make by itself, in the words of PyTorch's gloo, or of its NCCL."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import NoReturn

import torch
import torch.distributed as dist

from torchemu.frontends.torch.reductions import number

_REFUSED = {
    torch.int16: "Short",
    torch.uint16: "UInt16",
    torch.uint32: "UInt32",
    torch.uint64: "UInt64",
    torch.complex32: "ComplexHalf",
    torch.complex64: "ComplexFloat",
    torch.complex128: "ComplexDouble",
}
"""Dtypes that NCCL does not have; of complex numbers torch.distributed mostly gives it the parts."""

_BY_MESSAGES = ("all_to_all", "all_to_all_single", "gather", "scatter")
"""Collectives that PyTorch makes of NCCL's messages."""

_MULTIPLIED = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
"""Dtypes of which NCCL has PREMUL_SUM."""

_AVG, _PREMUL = int(dist.ReduceOp.AVG), int(dist.ReduceOp.PREMUL_SUM)
_LINEAR = (int(dist.ReduceOp.SUM), _AVG, _PREMUL)
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


def types(operation: str, dtype: torch.dtype) -> None:
    """Refuses tensors of a dtype that NCCL does not have."""
    name = _REFUSED.get(dtype)
    if name is None:
        return
    if operation in _BY_MESSAGES:
        raise RuntimeError(f"Unconvertible NCCL type {name}")
    raise TypeError(f"Input tensor data type is not supported for NCCL process group: {name}")


def message(backend: str, tensor: torch.Tensor) -> None:
    """Refuses a message of a tensor with gaps between its elements, as NCCL does, or of one with gaps between its rows
    or in another order, as gloo does."""
    if backend == "gloo" and not tensor.is_contiguous():
        raise RuntimeError("input tensor has to be contiguous")
    if backend == "nccl":
        types("send", tensor.dtype)
        if not _is_dense(tensor):
            raise ValueError("Tensors for P2P must be non-overlapping and dense")


def to_itself(operation: str) -> NoReturn:
    """Refuses a message of a rank to itself, for which NCCL finds no peer."""
    raise dist.DistBackendError(
        f"NCCL error: {operation} : a rank has no messages with itself, other than in batch_isend_irecv"
    )


def of_gloo(backend: str, operation: str) -> None:
    """Refuses what gloo alone has."""
    if backend == "nccl":
        raise NotImplementedError(f"ProcessGroupNCCL does not support {operation}")


def root(operation: str, rank: int, size: int, backend: str) -> None:
    """Refuses a root that is not in the group."""
    if 0 <= rank < size:
        return
    if backend == "nccl" and operation not in _BY_MESSAGES:
        raise dist.DistBackendError(
            "NCCL error: invalid argument\nncclInvalidArgument: Invalid value for an argument.\nLast error:\n"
            f"{operation.capitalize()} : invalid root {rank} (root should be in the 0..{size} range)"
        )
    refuse(operation, f"invalid root rank: {rank}", backend)


def reduction(backend: str, op: object, dtype: torch.dtype) -> None:
    """Refuses a reduction that the backend does not have, or not of a dtype."""
    if backend != "nccl":
        return
    types("all_reduce", dtype)
    kind = number(op)
    if kind in _BITWISE:
        raise ValueError(f"Cannot use ReduceOp.{_BITWISE[kind]} with NCCL")
    if kind == _AVG and dtype is torch.bool:
        raise TypeError("Cannot use ReduceOp.AVG with boolean inputs")
    if kind == _PREMUL and dtype not in _MULTIPLIED:
        raise TypeError("PreMulSum Data type must be half, float, bfloat16 or double")


def by_parts(operation: str, op: object) -> None:
    """Refuses a reduction of complex numbers that is none of their parts."""
    if number(op) not in _LINEAR:
        raise RuntimeError(f"{operation} does not support {op} on complex tensors")


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


def not_empty(operation: str, tensors: Sequence[torch.Tensor], what: str = "") -> None:
    """Refuses an empty list."""
    if not tensors:
        refuse(operation, f"requires non-empty {what}tensor list")


def root_tensor(backend: str, operation: str, opts: object, count: int) -> None:
    """Refuses options that name a tensor of a rank's which the rank does not bring, as gloo does."""
    number = getattr(opts, "rootTensor", 0)
    if backend == "gloo" and not 0 <= number < count:
        refuse(operation, f"invalid root tensor: {number}")


def one_layout(operation: str, tensors: Sequence[torch.Tensor]) -> None:
    """Refuses sparse tensors among dense ones."""
    for index, tensor in enumerate(tensors):
        if tensor.layout is not tensors[0].layout:
            want, got = (_LAYOUTS.get(t.layout, str(t.layout)) for t in (tensors[0], tensor))
            refuse(operation, f"invalid tensor layout at index {index} (expected {want}, got {got})")


_LAYOUTS = {torch.strided: "Strided", torch.sparse_coo: "Sparse", torch.sparse_csr: "SparseCsr"}
"""The names of layouts in PyTorch's errors."""


def coalesced(backend: str, tensors: Sequence[torch.Tensor], on_host: bool) -> None:
    """Refuses tensors that gloo does not reduce as one operation.

    Args:
        backend: the one that is for the tensors.
        on_host: the first is in the host's memory.
    """
    if backend != "gloo":
        return
    one_layout("allreduce_coalesced", tensors)
    if any(tensor.dtype != tensors[0].dtype for tensor in tensors):
        refuse("allreduce_coalesced", "tensors must all have the same type")
    if not on_host:
        refuse("allreduce_coalesced", f"unsupported device type {tensors[0].device.type}")
    if tensors[0].layout is not torch.strided:
        refuse("allreduce_coalesced", "unsupported layout")


def gathered_coalesced(rows: Sequence[Sequence[torch.Tensor]], given: Sequence[torch.Tensor]) -> None:
    """Refuses lists, one for each rank, that have not a tensor for each that a rank brings, of its type and size."""
    for row in rows:
        if len(row) != len(given):
            refuse("allgather_coalesced", f"invalid output size: (expected length {len(given)}, got {len(row)})")
        for index, (out, one) in enumerate(zip(row, given, strict=True)):
            if out.shape != one.shape:
                text = f"invalid size of output tensor at index {index} (expected length {_shape(one)}, "
                refuse("allgather_coalesced", f"{text}got {_shape(out)})")
            if out.dtype != one.dtype:
                text = f"invalid tensor type at index {index} (expected {one.type()}, got {out.type()})"
                refuse("allgather_coalesced", text)


def single(operation: str, tensors: Sequence[torch.Tensor], what: str = "") -> None:
    """Refuses a list that has not one element."""
    if len(tensors) != 1:
        refuse(operation, f"requires a single-element {what}tensor list")


def of_root(backend: str, operation: str, what: str, lists: Sequence[Sequence[torch.Tensor]], size: int) -> None:
    """Refuses what a root gives that is not a list of a tensor for each rank, in a list."""
    if len(lists) != 1:
        end = "." if backend == "nccl" or operation == "gather" else ""
        refuse(operation, f"requires a single-element {what} list containing a list with {size} tensors{end}", backend)
    if len(lists[0]) != size:
        refuse(
            operation,
            f"Incorrect {what} list size {len(lists[0])}. {what.capitalize()} list size should be {size}, "
            "same as size of the process group.",
            backend,
        )


def of_no_root(backend: str, operation: str, what: str, lists: Sequence[Sequence[torch.Tensor]]) -> None:
    """Refuses what a rank gives that only the root is to give."""
    if lists:
        refuse(operation, f"requires empty {what} on non-root", backend)


def alone(backend: str, tensors: Sequence[torch.Tensor]) -> None:
    """Refuses several tensors of one rank, as NCCL does."""
    if backend == "nccl" and len(tensors) != 1:
        raise RuntimeError(
            "Expecting one tensor only but got multiple. You are probably using multiple devices under one thread."
        )


def as_many(
    operation: str, what: str, index: int, tensors: Sequence[torch.Tensor], size: int, backend: str = "gloo"
) -> None:
    """Refuses a list that has not a tensor for each rank."""
    if len(tensors) != size:
        text = f"invalid {what} tensor list at index {index} (expected length {size}, got {len(tensors)})"
        refuse(operation, text, backend)


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
