"""Checks of what a rank can know to be wrong with the arguments of a collective, in PyTorch's words."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from torchemu import runtime
from torchemu.c10d.backends import Backend
from torchemu.dtypes import dtype
from torchemu.runtime.buffer import BUFFERS, Buffer, Device, buffer_of

if TYPE_CHECKING:
    from torchemu.c10d.group import Group


def integer(value: Any, parameter: str) -> int:
    """Returns a whole number of any kind, such as NumPy's, as Python's.

    Raises:
        TypeError: the value is no whole number.
    """
    try:
        return operator.index(value)
    except TypeError:
        raise TypeError(f"{parameter} must be an integer, not {value!r}") from None


def check_tensor(value: Any, parameter: str) -> Buffer:
    """Returns the buffer of a tensor.

    Raises:
        TypeError: the value is no tensor.
    """
    found: Buffer | None = value if type(value) in BUFFERS else buffer_of(value)
    if found is None:
        raise TypeError(_invalid(parameter, "torch.Tensor", f"{type(value)} instead"))
    return found


def check_list(value: Any, parameter: str) -> list[Buffer]:
    """Returns the buffers of a list of tensors.

    Raises:
        TypeError: the value is no such list.
    """
    if not isinstance(value, list):
        raise TypeError(_invalid(parameter, "List[torch.Tensor]", f"{type(value)} instead"))
    if BUFFERS.issuperset(map(type, value)):
        return value
    found = [buffer_of(t) for t in value]
    if any(buffer is None for buffer in found):
        kinds = [type(t) for t in value]
        raise TypeError(_invalid(parameter, "List[torch.Tensor]", f"{type(value)} with elements of type {kinds}"))
    return found


def _invalid(parameter: str, wanted: str, given: str) -> str:
    return (
        f"Invalid function argument. Expected parameter `{parameter}` of type {wanted}\n             but got {given}."
    )


def check_dtypes(tensors: Iterable[Buffer]) -> None:
    """Raises ValueError unless all tensors have one dtype."""
    first: dtype | None = None
    for t in tensors:
        if first is None:
            first = t.dtype
        elif t.dtype is not first:
            raise ValueError(f"Invalid usage of tensors with different dtypesFound {first} and  {t.dtype}")


def check_place(group: Group, parameter: str, tensors: Sequence[Buffer]) -> None:
    """Raises unless the tensors are of the group's World, and this rank's: on its device or in its host's memory.

    Raises:
        RuntimeError: another World; the group's backend is for other devices.
        ValueError: the device of another rank.
    """
    served_rank, served = group.served
    if served_rank is not runtime.current():
        served = None
    for t in tensors:
        if t.world is not group.world:
            raise RuntimeError(f"`{parameter}` belongs to another World than the process group")
        if t.device is not served:
            _check_device(group, parameter, t.device)


def _check_device(group: Group, parameter: str, where: Device) -> None:
    context = runtime.current()
    own = context.rank - (context.node.start if context.node is not None else 0)
    if not ((where.is_sip and group.takes_devices) or (where.is_host and group.takes_hosts)):
        raise RuntimeError(f"No backend type associated with device type {where.type}")
    if not where.is_host and where.index != own and not group.sharded:
        raise ValueError(
            f"`{parameter}` is on device {where.index}, but rank {context.rank} is on device {own}; "
            f"call torch.ahbm.set_device({own}) before making it"
        )
    group.served = (context, where)


def refuse_shards(group: Group, operation: str) -> None:
    """Raises NotImplementedError for the group of a single worker's shards."""
    if group.sharded:
        raise NotImplementedError(f"{operation} over the shards of a single worker is not supported")


def check_root(group: Group, operation: str, root: int) -> None:
    """Raises RuntimeError unless the group rank exists."""
    if not 0 <= root < group.size():
        raise RuntimeError(f"ProcessGroupGloo::{operation}: invalid root rank: {root}")


def check_blocks(group: Group, operation: str, blocks: Sequence[Any], own: Any) -> None:
    """Raises RuntimeError unless this rank's block has as many elements as its own tensor. Other blocks may differ; but
    those of as many elements have the same shape with gloo."""
    mine, exact = buffer_of(own), group.backend == Backend.GLOO
    right = buffer_of(blocks[group.rank()]).numel() == mine.numel()
    for i, block in enumerate(map(buffer_of, blocks)):
        if (not right and block.numel() != mine.numel()) or (
            exact and block.numel() == mine.numel() and tuple(block.shape) != tuple(mine.shape)
        ):
            raise RuntimeError(_wrong_size(operation, i, mine.shape, block.shape))


def check_gathered_whole(group: Group, output: Buffer, given: Buffer) -> None:
    """Raises unless the output has room for what all ranks give. Gloo cuts it along its first dimension to see.

    Raises:
        RuntimeError: wrong dtype or size.
        TypeError, ValueError: the same, with backend nccl.
    """
    n = group.size()
    if output.dtype is not given.dtype:
        if group.backend == Backend.NCCL:
            raise TypeError("output tensor must have the same type as input tensor")
        raise RuntimeError(_wrong_type("allgather", 0, given, output))
    if output.numel() == n * given.numel():
        return
    if group.backend == Backend.NCCL:
        raise ValueError("output tensor size must be equal to world_size times input tensor size")
    rows = output.shape[0] if output.shape else 1
    chunk = max(-(-rows // n), 1)
    if -(-rows // chunk) != n:
        raise RuntimeError(
            "ProcessGroupGloo::allgather: invalid output tensor list at index 0 "
            f"(expected length {n}, got {-(-rows // chunk)})"
        )
    sizes = [min(chunk, rows - i * chunk) for i in range(n)]
    index = next((i for i, size in enumerate(sizes) if (size, *output.shape[1:]) != given.shape), 0)
    raise RuntimeError(_wrong_size("allgather", index, given.shape, (sizes[index], *output.shape[1:])))


def check_scattered_whole(group: Group, output: Buffer, given: Buffer) -> None:
    """Raises unless the output has room for this rank's share.

    Raises:
        TypeError: wrong dtype.
        RuntimeError: wrong size; ValueError with backend nccl.
    """
    if output.dtype is not given.dtype:
        raise TypeError(f"input tensor must be the same type as the output tensor: {given.dtype} and {output.dtype}")
    if output.numel() * group.size() == given.numel():
        return
    what = "input tensor must be the same size as output size times world size"
    if group.backend == Backend.NCCL:
        raise ValueError(what)
    wanted, has = (output.shape or (1,))[0] * group.size(), (given.shape or (1,))[0]
    raise RuntimeError(
        f"[rank{group.rank()}]: Check failed: outputShape[0] * worldSize == inputShape[0] ({wanted} vs. {has}). {what}"
    )


def _wrong_size(operation: str, index: int, expected: Sequence[int], got: Sequence[int]) -> str:
    """Gloo's words for a tensor of a wrong size."""
    return (
        f"ProcessGroupGloo::{operation}: invalid tensor size at index {index} "
        f"(expected {_sizes(expected)}, got {_sizes(got)})"
    )


def _sizes(shape: Sequence[int]) -> str:
    return f"({', '.join(map(str, shape))})"


def _wrong_type(operation: str, index: int, expected: Buffer, got: Buffer) -> str:
    """Gloo's words for a tensor of a wrong type."""
    return (
        f"ProcessGroupGloo::{operation}: invalid tensor type at index {index} "
        f"(expected {_options(expected)}, got {_options(got)})"
    )


_C_NAMES = {
    "float16": "c10::Half",
    "bfloat16": "c10::BFloat16",
    "float32": "float",
    "float64": "double",
    "complex64": "c10::complex<float>",
    "complex128": "c10::complex<double>",
    "uint8": "unsigned char",
    "int8": "signed char",
    "int16": "short int",
    "int32": "int",
    "int64": "long int",
}


def _options(t: Buffer) -> str:
    name = _C_NAMES.get(t.dtype.name, t.dtype.name)
    return f"TensorOptions(dtype={name}, device={t.device}, layout=Strided, …)"


def splits(sizes: Sequence[int] | None, t: Buffer, world: int) -> list[int]:
    """The rows of a tensor that are for, or from, each rank.

    Raises:
        TypeError: a size is no integer.
        RuntimeError: sizes does not fit the tensor or the group.
        ValueError: without sizes, the rows cannot be shared equally. (gloo then exchanges halves of elements.)
    """
    rows = t.shape[0] if t.shape else 0
    sizes = [integer(size, "a split size") for size in sizes] if sizes is not None else []
    if not sizes:
        if not t.shape or rows % world:
            raise ValueError("Tensor's dim 0 does not divide equally across group size")
        return [rows // world] * world
    if len(sizes) != world:
        raise RuntimeError("Number of tensor splits not equal to group size")
    if sum(sizes) != rows or min(sizes) < 0:
        raise RuntimeError("Split sizes doesn't match total dim 0 size")
    return sizes
