"""Tensors that programs give to mori, on whichever front end."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torchemu.frontends.mori._launch import Hollow
from torchemu.runtime.buffer import Buffer, buffer_of


def given(what: str, tensor: Any) -> Buffer:
    """Returns the buffer of a tensor on a device, whose elements follow one another.

    Raises:
        TypeError: it is no tensor.
        ValueError: it is in the host's memory, or not contiguous.
    """
    buffer = buffer_of(tensor)
    if buffer is None:
        raise TypeError(f"{what} is to be a tensor, not {type(tensor).__name__}")
    if not buffer.device.is_sip:
        raise ValueError(f"{what} is on {buffer.device}: it has to be on the rank's device")
    if not buffer.is_contiguous():
        raise ValueError(f"{what} is not contiguous")
    return buffer


def sized(what: str, tensor: Any, count: int, elements: int) -> int:
    """Returns the bytes of so many elements of a tensor that is to have more. Memory without bytes has elements of 4.

    Raises:
        TypeError, ValueError: as given; a count is negative; the tensor is too small.
    """
    if isinstance(tensor, Hollow):
        return 4 * count
    buffer = given(what, tensor)
    if count < 0:
        raise ValueError(f"count is to be 0 or more, not {count}")
    if buffer.numel() < elements:
        raise ValueError(f"{what} has {buffer.numel()} elements; {elements} are needed for a count of {count} a rank")
    return count * buffer.dtype.itemsize


def numbers(values: Any) -> list[int]:
    """Returns whole numbers of a tensor or another sequence."""
    return [int(n) for n in (values.tolist() if hasattr(values, "tolist") else values)]


def in_bytes(
    shard: Any, whole: Any, count: int, npes: int, split_sizes: Any, split_offsets: Any
) -> tuple[int, list[tuple[int, int]]]:
    """Returns the bytes of a shard of so many elements, and of each split the first byte and how many there are.

    Raises:
        TypeError, ValueError: as sized; the lists differ in length; a split is not in the shard.
    """
    sizes, starts = numbers(split_sizes), numbers(split_offsets)
    if len(sizes) != len(starts):
        raise ValueError(f"{len(sizes)} split_sizes and {len(starts)} split_offsets: there have to be as many")
    nbytes = sized("input", shard, count, count)
    sized("output", whole, count, count * npes)
    size = nbytes // count if count else 0
    if any(n < 0 or o < 0 or o + n > count for n, o in zip(sizes, starts, strict=True)):
        raise ValueError(f"splits {sizes} from {starts} on are not all in the {count} elements of a shard")
    return nbytes, [(o * size, n * size) for n, o in zip(sizes, starts, strict=True)]


def in_lanes(splits: Sequence[tuple[int, int]]) -> bool:
    """Says whether all splits begin and end between lanes of 4 bytes."""
    return all(start % 4 == 0 and nbytes % 4 == 0 for start, nbytes in splits)
