"""The instructions, under the names that C++ kernels know them by."""
# ruff: noqa: N802 (those names)

from __future__ import annotations

import enum

from torchemu.bridge.binding import go
from torchemu.frontends.pto._memory import GlobalTensor, Signal, Tile
from torchemu.frontends.pto._program import running

_WORD_BYTES = 4


class Pipe(enum.IntEnum):
    """The parts of a core that work through instructions of their own, side by side."""

    PIPE_S = 0
    PIPE_MTE2 = 1
    PIPE_V = 2
    PIPE_M = 3
    PIPE_MTE3 = 4
    PIPE_ALL = 5


class NotifyOp(enum.IntEnum):
    """The effect of a signal on its word."""

    AtomicAdd = 0
    Set = 1


class WaitCmp(enum.IntEnum):
    """The comparison of a word with the value that a wait is for."""

    EQ = 0
    NE = 1
    GT = 2
    GE = 3
    LT = 4
    LE = 5


class AtomicType(enum.IntEnum):
    """The effect of TPUT where it writes."""

    AtomicNone = 0
    AtomicAdd = 1


# -- between memory and scratch memory


def TASSIGN(tile: Tile, offset: int) -> None:
    """Gives a tile its place: bytes from the beginning of the scratch memory.

    Raises:
        ValueError: it does not fit there.
    """
    tile.assign(offset)


def TLOAD(tile: Tile, src: GlobalTensor) -> None:
    """Brings elements from any chip's memory into a tile, on PIPE_MTE2."""
    _same_size("TLOAD", tile.nbytes, src.nbytes)
    running().operate(go.PrimLoad, tile.addr, src.data.addr, tile.nbytes)


def TSTORE(dst: GlobalTensor, tile: Tile) -> None:
    """Brings a tile into any chip's memory, on PIPE_MTE3. In another chip's it lands later."""
    _same_size("TSTORE", dst.nbytes, tile.nbytes)
    running().operate(go.PrimStore, dst.data.addr, tile.addr, tile.nbytes)


def TADD(dst: Tile, a: Tile, b: Tile) -> None:
    """dst = a + b, element by element, on PIPE_V."""
    _combine("TADD", "sum", dst, a, b)


def TMUL(dst: Tile, a: Tile, b: Tile) -> None:
    """dst = a·b, element by element, on PIPE_V."""
    _combine("TMUL", "prod", dst, a, b)


def _combine(what: str, op: str, dst: Tile, a: Tile, b: Tile) -> None:
    for tile in (a, b):
        _same_size(what, dst.nbytes, tile.nbytes)
    running().operate(go.PrimCombine, op, dst.dtype.name, dst.addr, a.addr, b.addr, dst.nbytes)


def TMATMUL(dst: Tile, a: Tile, b: Tile) -> None:
    """dst = a·b for tiles of float32, summed in float32 from the first column of a on, on PIPE_M.

    Raises:
        ValueError: they do not fit together.
    """
    if (a.cols, dst.rows, dst.cols) != (b.rows, a.rows, b.cols):
        sizes = " = ".join((f"{dst.rows}x{dst.cols}", f"{a.rows}x{a.cols} · {b.rows}x{b.cols}"))
        raise ValueError(f"TMATMUL: {sizes} does not fit")
    running().operate(go.PrimDot, dst.addr, a.addr, b.addr, a.rows, b.cols, a.cols, False)


def TPUT(dst: GlobalTensor, src: GlobalTensor, tile: Tile, atomic: AtomicType = AtomicType.AtomicNone) -> None:
    """Writes elements of the own memory to another chip's, or adds them to what is there. It returns when src may be
    overwritten; the data lands later. The tile, which hardware moves the data through, is not looked at."""
    _same_size("TPUT", dst.nbytes, src.nbytes)
    if atomic is AtomicType.AtomicAdd:
        running().operate(go.PrimPutReduce, "sum", dst.data.dtype.name, dst.data.addr, src.data.addr, src.nbytes)
    else:
        running().operate(go.PrimPut, dst.data.addr, src.data.addr, src.nbytes, True, 0, _WORD_BYTES, 0, 0)


def TGET(dst: GlobalTensor, src: GlobalTensor, tile: Tile) -> None:
    """Brings elements of another chip's memory into the own; it returns when they are there. For the tile see TPUT."""
    _same_size("TGET", dst.nbytes, src.nbytes)
    running().operate(go.PrimGet, dst.data.addr, src.data.addr, src.nbytes, True)


def _same_size(what: str, to: int, source: int) -> None:
    if to != source:
        raise ValueError(f"{what}: {source} bytes for {to}")


# -- signals


def TNOTIFY(signal: Signal, value: int, op: NotifyOp) -> None:
    """Changes a word of another chip, later: after what the kernel has sent there, but not after stores that PIPE_MTE3
    has still to do."""
    running().operate(go.PrimSignal, signal.ptr.addr, _WORD_BYTES, int(op), value)


def TWAIT(signal: Signal, value: int, cmp: WaitCmp) -> None:
    """Waits until a word of the own chip, or each of several, compares so with the value."""
    for i in range(signal.count):
        running().operate(go.PrimWait, signal.ptr.addr + i * _WORD_BYTES, _WORD_BYTES, int(cmp), value, False)


def TTEST(signal: Signal, value: int, cmp: WaitCmp) -> bool:
    """Reports whether a word of the own chip, or each of several, compares so with the value now. A kernel that asks
    for ever what nobody will change is a deadlock, as with TWAIT."""
    return all(_test(signal.ptr.addr + i * _WORD_BYTES, value, cmp) for i in range(signal.count))


def _test(address: int, value: int, cmp: WaitCmp) -> bool:
    return running().test(go.PrimWait, address, _WORD_BYTES, int(cmp), value, True)


# -- order


def set_flag(src: Pipe, dst: Pipe, event: int) -> None:
    """Pipe src sets a flag when it has done what it was given before."""
    running().operate(go.PrimFlag, False, int(src), int(dst), event)


def wait_flag(src: Pipe, dst: Pipe, event: int) -> None:
    """Pipe dst waits for the flag, which takes it back, before it does what it is given after."""
    running().operate(go.PrimFlag, True, int(src), int(dst), event)


def pipe_barrier(pipe: Pipe) -> None:
    """With PIPE_ALL, waits until all pipes have done what they were given. One pipe does things in order anyway."""
    if pipe is Pipe.PIPE_ALL:
        running().operate(go.PrimOrder, "pipe_barrier")


def dsb() -> None:
    """Waits until all that the kernel has sent has landed, so that what it tells anyone after that is not too early.
    Stores count as sent when PIPE_MTE3 has done them."""
    running().operate(go.PrimOrder, "quiet")
