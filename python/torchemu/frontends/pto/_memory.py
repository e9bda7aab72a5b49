"""Operands of instructions: places in memory, tiles in scratch memory, and a kernel's arguments."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from torchemu import dtypes
from torchemu.bridge.binding import go
from torchemu.frontends.pto._program import running

_MOST_RANKS = 64
CONTEXT = np.dtype(
    [
        ("workSpace", "<u8"),
        ("workSpaceSize", "<u8"),
        ("rankId", "<u4"),
        ("rankNum", "<u4"),
        ("winSize", "<u8"),
        ("windowsIn", "<u8", _MOST_RANKS),
        ("windowsOut", "<u8", _MOST_RANKS),
    ]
)
"""A CommContext."""

CONTEXT_BYTES = CONTEXT.itemsize
"""1056: the size of a CommContext in memory."""


@dataclass(frozen=True)
class Ptr:
    """The address of an element in some chip's memory, as ``__gm__ float *`` is.

    Attributes:
        addr: in bytes.
        dtype: of the elements there.
    """

    addr: int
    dtype: dtypes.dtype = dtypes.float32

    def __add__(self, elements: int) -> Ptr:
        return Ptr(self.addr + elements * self.dtype.itemsize, self.dtype)

    def __sub__(self, elements: int) -> Ptr:
        return self + -elements

    def cast(self, kind: dtypes.dtype) -> Ptr:
        """The same address, of elements of another type."""
        return Ptr(self.addr, kind)


@dataclass(frozen=True)
class Buffer:
    """Memory that a tensor is in.

    Attributes:
        addr: where it begins.
        size: bytes.
    """

    addr: int
    size: int


@dataclass(frozen=True)
class TensorArg:
    """The argument that a kernel gets for a tensor.

    Attributes:
        start_offset: elements from the buffer's beginning to the tensor's.
        shapes: the size of each dimension.
        steps: elements from one to the next, in each dimension; None for elements one after another.
    """

    buffer: Buffer
    shapes: tuple[int, ...]
    dtype: dtypes.dtype
    start_offset: int = 0
    steps: tuple[int, ...] | None = None

    @property
    def strides(self) -> tuple[int, ...]:
        """Elements from one to the next, in each dimension."""
        if self.steps is not None:
            return self.steps
        return tuple(math.prod(self.shapes[i + 1 :]) for i in range(len(self.shapes)))

    def numel(self) -> int:
        """The number of elements."""
        return math.prod(self.shapes)

    def ptr(self) -> Ptr:
        """The address of the first element."""
        return Ptr(self.buffer.addr, self.dtype) + self.start_offset


class CommContext:
    """A domain, as it lies in a chip's memory at an address that a kernel gets as a scalar.

    Attributes:
        rankId, rankNum: the kernel's place in the domain, and the number of members.
        winSize: bytes of a window.
        windowsIn, windowsOut: where the windows are, by member.
    """

    def __init__(self, addr: int) -> None:
        raw = np.empty(1, CONTEXT)
        go.PrimRead(running().machine, addr, raw.__array_interface__["data"][0], CONTEXT_BYTES)
        about = raw[0]
        self.rankId, self.rankNum = int(about["rankId"]), int(about["rankNum"])
        self.winSize = int(about["winSize"])
        self.windowsIn = [int(a) for a in about["windowsIn"][: self.rankNum]]
        self.windowsOut = [int(a) for a in about["windowsOut"][: self.rankNum]]


def packed_context(rank: int, windows: Sequence[int], size: int) -> np.ndarray:
    """The bytes of the CommContext of one member of a domain with these windows, of so many bytes each."""
    raw = np.zeros(1, CONTEXT)
    raw["rankId"], raw["rankNum"], raw["winSize"] = rank, len(windows), size
    raw["windowsIn"][0, : len(windows)] = raw["windowsOut"][0, : len(windows)] = windows
    return raw.view(np.uint8)


def CommRemotePtr(ctx: CommContext, p: Ptr, pe: int) -> Ptr:  # noqa: N802 (what C++ calls it)
    """The place in another member's window that p is in the own one."""
    return Ptr(ctx.windowsIn[pe] + (p.addr - ctx.windowsIn[ctx.rankId]), p.dtype)


@dataclass(frozen=True)
class GlobalTensor:
    """Elements in memory, one after another, for instructions.

    Attributes:
        data: where the first one is.
        shape: the sizes.
    """

    data: Ptr
    shape: tuple[int, ...]

    @property
    def nbytes(self) -> int:
        """Bytes in all."""
        return math.prod(self.shape) * self.data.dtype.itemsize


class Tile:
    """Rows of elements in a PE's scratch memory, once TASSIGN has said where.

    Args:
        dtype: of the elements.
    """

    def __init__(self, rows: int, cols: int, dtype: dtypes.dtype = dtypes.float32) -> None:
        self.rows, self.cols, self.dtype = rows, cols, dtype
        self._addr = 0

    @property
    def nbytes(self) -> int:
        """Bytes in all."""
        return self.rows * self.cols * self.dtype.itemsize

    @property
    def addr(self) -> int:
        """Returns its address.

        Raises:
            RuntimeError: nowhere yet.
        """
        if not self._addr:
            raise RuntimeError("the tile has no place in scratch memory yet: TASSIGN(tile, offset) gives it one")
        return self._addr

    def assign(self, offset: int) -> None:
        """Puts it at so many bytes in the scratch memory of the running kernel's PE."""
        most = go.PrimScratchBytes(running().machine)
        if offset < 0 or offset + self.nbytes > most:
            raise ValueError(f"a tile of {self.nbytes} bytes at {offset}: scratch memory has {most} bytes")
        self._addr = go.PrimScratch(running().handle, 0, 0) + offset


@dataclass(frozen=True)
class Signal:
    """A word of 32 bits in memory, or so many one after another.

    Attributes:
        addr: where the first is.
        count: how many.
    """

    ptr: Ptr
    count: int = 1
