"""Moves between memories: tiles and HBM, one rank's and another's."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from torchemu.bridge.binding import go
from torchemu.language._pointer import Pointer, checked, count
from torchemu.language._program import current
from torchemu.language._tile import Tile, computed, new_tile, shape_of

_OPS = {"add": 0, "set": 1}
_WORDS = ("int32", "int64")


def load(
    pointer: Pointer,
    shape: int | Sequence[int],
    strides: Sequence[int] | None = None,
    mask: Any = None,
    other: float = 0,
) -> Tile:
    """A tile of elements in the memory of any rank, on the load pipe: of those from a place on, or in strides. Each run
    of elements side by side is an instruction.

    Args:
        pointer: the first element.
        shape: of the tile.
        strides: for each dimension, the elements from one index to the next; None for one after another.
        mask: which of them to load, as bools that NumPy spreads over the shape, or a tile of them, for which it waits;
            None for all.
        other: what the tile has in the place of those that are not loaded.

    Raises:
        ValueError: they are not in one window; a negative number; strides or a mask of another shape.
        MemoryError: there is no room in the scratch memory.
    """
    checked(pointer, "pointer")
    tile = new_tile(pointer.dtype, shape_of(shape))
    if not tile.numel:
        return tile
    runs = _runs(tile.shape, strides, mask)
    if sum(n for _, _, n in runs) < tile.numel:
        computed("full", tile, (other,), lambda v: v)
    size = tile.dtype.itemsize
    for at, offset, n in runs:
        tile._program.call(go.PrimLoad, tile.address + at * size, pointer.address + offset * size, n * size)
    return tile


def _runs(shape: tuple[int, ...], strides: Sequence[int] | None, mask: Any) -> list[tuple[int, int, int]]:
    """The runs of elements that are side by side in a tile and in memory: the first in each, and how many."""
    if isinstance(mask, Tile):
        mask = mask.numpy()  # the program waits for what decides which instructions there are
    if strides is None and mask is None:
        return [(0, 0, math.prod(shape))]
    if strides is None:
        strides = [math.prod(shape[d + 1 :]) for d in range(len(shape))]
    if len(strides) != len(shape):
        raise ValueError(f"strides {list(strides)} for a tile of shape {list(shape)}: one for each dimension")
    offsets = sum(np.indices(shape, sparse=True)[d] * int(step) for d, step in enumerate(strides))
    offsets = np.broadcast_to(offsets, shape).ravel()
    try:
        kept = np.broadcast_to(True if mask is None else np.asarray(mask, bool), shape).ravel()
    except ValueError:
        raise ValueError(f"a mask of shape {list(np.shape(mask))} for a tile of shape {list(shape)}") from None
    places = np.flatnonzero(kept)
    if not len(places):
        return []
    breaks = np.flatnonzero((np.diff(places) != 1) | (np.diff(offsets[places]) != 1)) + 1
    return [(int(run[0]), int(offsets[run[0]]), len(run)) for run in np.split(places, breaks)]


def store(pointer: Pointer, tile: Tile, strides: Sequence[int] | None = None, mask: Any = None) -> None:
    """Writes a tile to a place in the memory of any rank, on the store pipe, one after another or in strides, as load
    does. In the own memory it is there when the pipes have run empty (:func:`drain`); in another rank's it lands later.

    Raises:
        TypeError: the dtypes differ.
        ValueError: there is not so much memory; strides or a mask of another shape.
    """
    if _stored(pointer, tile):
        size = tile.dtype.itemsize
        for at, offset, n in _runs(tile.shape, strides, mask):
            tile._program.call(go.PrimStore, pointer.address + offset * size, tile.address + at * size, n * size)


def store_reduce(pointer: Pointer, tile: Tile, op: str = "sum") -> None:
    """Combines a tile into memory of any rank, element by element, in one step that nothing can divide."""
    if _stored(pointer, tile):
        args = (op, tile.dtype.name, pointer.address, tile.address, tile.nbytes)
        tile._program.call(go.PrimStoreReduce, *args)


def _stored(pointer: Pointer, tile: Tile) -> bool:
    """Reports whether there is anything to store."""
    checked(pointer, "pointer")
    if not isinstance(tile, Tile):
        raise TypeError(f"a tile can be stored, not {type(tile).__name__}")
    if pointer.dtype is not tile.dtype:
        raise TypeError(f"a tile of {tile.dtype!r} cannot be stored as {pointer.dtype!r}: convert it first, with to()")
    return tile.numel > 0


def put(to: Pointer, source: Pointer | Tile, n: int | None = None) -> None:
    """Writes n elements to memory of any rank. It returns when the source may be overwritten; they land later."""
    _put(to, source, n, True)


def put_nbi(to: Pointer, source: Pointer | Tile, n: int | None = None) -> None:
    """Acts as put, but returns at once: the source must not change before a :func:`quiet`."""
    _put(to, source, n, False)


def put_signal(
    to: Pointer, source: Pointer | Tile, n: int | None, word: Pointer, value: int = 1, op: str = "add"
) -> None:
    """Acts as put, with a signal to a word of the same rank that lands after the data."""
    _put(to, source, n, True, word, value, op)


def put_signal_nbi(
    to: Pointer, source: Pointer | Tile, n: int | None, word: Pointer, value: int = 1, op: str = "add"
) -> None:
    """Acts as put_signal, but returns at once."""
    _put(to, source, n, False, word, value, op)


def put_reduce(to: Pointer, source: Pointer, n: int, op: str = "sum") -> None:
    """Acts as put, but combines with what is there, element by element, in one step that nothing can divide."""
    address, nbytes = _source(to, source, n)
    if nbytes:
        current().call(go.PrimPutReduce, op, to.dtype.name, to.address, address, nbytes)


def get(to: Pointer, source: Pointer, n: int) -> None:
    """Brings n elements from memory of any rank, and returns when they are there."""
    _get(to, source, n, True)


def get_nbi(to: Pointer, source: Pointer, n: int) -> None:
    """Acts as get, but returns at once: they are there after a :func:`quiet`."""
    _get(to, source, n, False)


class Event:
    """The completion of a copy; see :func:`copy_async`."""

    __slots__ = ("_handle",)

    def __init__(self, handle: int) -> None:
        self._handle = handle

    def wait(self) -> None:
        """Waits until the copy is complete."""
        if self._handle:
            current().call(go.PrimWaitEvent, self._handle)
            go.Release(self._handle)
            self._handle = 0


def copy_async(to: Pointer, source: Pointer, n: int) -> Event:
    """Lets a DMA engine move n elements between any two places, in no order with anything else, and returns at once."""
    address, nbytes = _source(to, source, n)
    program = current()
    return Event(go.PrimCopy(program.handle, program.line(), to.address, address, nbytes) if nbytes else 0)


def word_of(pointer: Any, what: str = "word") -> tuple[int, int]:
    """A word's address and size.

    Raises:
        TypeError: it is no pointer to int32 or int64.
    """
    p = checked(pointer, what)
    if p.dtype.name not in _WORDS:
        raise TypeError(f"{what} must be of int32 or int64, not {p.dtype!r}")
    return p.address, p.dtype.itemsize


def signal_op(name: str) -> int:
    """The core's number for add or set."""
    if name not in _OPS:
        raise ValueError(f"a signal can add or set, not {name!r}")
    return _OPS[name]


def _put(
    to: Pointer,
    source: Pointer | Tile,
    n: int | None,
    wait: bool,
    word: Pointer | None = None,
    value: int = 0,
    op: str = "add",
) -> None:
    address, nbytes = _source(to, source, n)
    at, size = (0, 0) if word is None else word_of(word)
    program = current()
    if nbytes:
        program.call(go.PrimPut, to.address, address, nbytes, wait, at, size, signal_op(op), value)
    elif word is not None:
        program.call(go.PrimSignal, at, size, signal_op(op), value)


def _get(to: Pointer, source: Pointer, n: int, wait: bool) -> None:
    address, nbytes = _source(to, source, n)
    if nbytes:
        current().call(go.PrimGet, to.address, address, nbytes, wait)


def _source(to: Pointer, source: Pointer | Tile, n: int | None) -> tuple[int, int]:
    """The address of a transfer's source and its bytes. A tile has to be there first."""
    checked(to, "the destination")
    if isinstance(source, Tile):
        current().call(go.PrimOrder, "pipe_barrier")
        n = source.numel if n is None else n
    elif n is None:
        raise TypeError("n is missing: how many elements are to be moved")
    else:
        checked(source, "the source")
    if to.dtype is not source.dtype:
        raise TypeError(f"elements of {source.dtype!r} cannot be moved to {to.dtype!r}")
    if isinstance(source, Tile) and count(n) > source.numel:
        raise ValueError(f"{n} elements of a tile that has {source.numel}")
    return source.address, count(n) * to.dtype.itemsize
