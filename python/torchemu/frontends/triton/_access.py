"""Loads and stores of a program: addresses become runs of bytes, which the checker and the fabric see."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from torchemu.bridge.binding import go
from torchemu.frontends.triton import _granules
from torchemu.frontends.triton._program import (
    LOAD,
    SCATTER,
    STORE,
    TOUCH,
    Block,
    Elements,
    NoLookError,
    Part,
    rank_of,
)
from torchemu.language._program import ACQUIRES, ATOMIC, READS, RELAXED, RELEASES, WRITES

_SECTOR = 32
"""Bytes that memory moves at least."""

ORDERS = {None: ATOMIC, "acq_rel": ATOMIC, "relaxed": RELAXED, "acquire": ACQUIRES, "release": RELEASES}
"""The uses of atomic operations by the semantics that they are given."""


PLAIN, FRESH, RELAXED_LOOK, FLAGGED = range(4)
"""How a load looks at memory, as the core has it."""

_NARROW = {"cta": 0, "gpu": 1}


def narrowed(program: Block, addresses: Sequence[int], size: int, what: str, scope: str | None) -> None:
    """Notes, for the checker, the scope of an operation on words that comes next; None where the program gives none."""
    if not program.checks or scope not in _NARROW or program.supposed is not None:
        return
    for address in dict.fromkeys(addresses):
        if scope == "cta" or rank_of(address) != program.launch.rank:
            program.call(go.PrimNarrow, what, address, size, _NARROW[scope])


def _hull(flat: np.ndarray, size: int) -> tuple[int, int, int]:
    """The first address, the end, and how many gaps there are; -1 where addresses do not rise."""
    first, last = int(flat[0]), int(flat[-1])
    if flat.size == 1:
        return first, first + size, 0
    steps = flat[1:] - flat[:-1]
    gaps = int(np.count_nonzero(steps != size))
    if gaps and (steps < 0).any():
        return int(flat.min()), int(flat.max()) + size, gaps
    return first, last + size, gaps


def runs(flat: np.ndarray, size: int) -> list[int]:
    """Returns the runs of elements at addresses, in their order: address and bytes of each."""
    if flat.size == 1:
        return [int(flat[0]), size]
    breaks = np.flatnonzero(np.diff(flat) != size) + 1
    starts = np.concatenate(([0], breaks))
    counts = np.diff(np.concatenate((starts, [flat.size])))
    return np.stack((flat[starts], counts * size), 1).ravel().tolist()


Hull = tuple[int, int, int]


def _parts(program: Block, flat: np.ndarray, hull: Hull, size: int, what: str) -> Part | None:
    """The part that all addresses are in; None where they are in several."""
    lo, hi, _ = hull
    part = program.part(lo)
    if part is not None and hi <= part.end:
        if hi > part.limit:
            _granules.inside(part, lo, hi - lo)
        return part
    for i, address in enumerate(flat.tolist()):
        own = program.part(address)
        if own is None or address + size > own.end:
            _fault(program, address, size, what, i, flat.size)
    return None


def _fault(program: Block, address: int, size: int, what: str, i: int, n: int) -> None:
    which = f"element {i} of {n}: " if n > 1 else ""
    program.flush()
    try:
        go.PrimTouch(program.handle, program.line(), what, (address, size), READS, False)
    except (RuntimeError, ValueError) as error:
        raise type(error)(f"{what}, {which}{error}") from None
    raise ValueError(f"{what}, {which}{address:#x} is in no window")


def reachable(program: Block, rank: int, what: str) -> None:
    """Makes sure that threads can get at a rank's memory.

    Raises:
        ValueError: it is on another node.
    """
    if rank not in program.launch.node:
        raise ValueError(
            f"{what}: memory of rank {rank} is not mapped on rank {program.launch.rank}: they are on different nodes; "
            "what reaches another node are put, get and signals of libshmem_device"
        )


def _aligned(program: Block, part: Part, flat: np.ndarray, size: int, what: str) -> None:
    off = (flat - part.start) % size
    if off.any():
        i = int(np.flatnonzero(off)[0])
        raise ValueError(
            f"{what}: misaligned address: {int(flat[i]):#x} is no multiple of {size} bytes, the size of an element"
        )


def read(
    program: Block, flat: np.ndarray, kind: np.dtype, what: str, look: int = PLAIN, threads: bool = True
) -> np.ndarray:
    """Returns the elements at addresses, of which there is at least one.

    Args:
        look: one of PLAIN and those after it.
        threads: all threads load.
    """
    if program.supposed is not None:
        return program.suppose(flat, kind)
    size = kind.itemsize
    hull = _hull(flat, size)
    part = _parts(program, flat, hull, size, what)
    program.flush()
    if part is None:
        return _by_part(program, flat, kind, what, look, threads)
    _charge(program, part, flat, hull, size, what, look, threads)
    result = _elements(program, part, flat, hull, kind, what)
    if program.loops:
        program.looks.extend(zip(flat.tolist(), _pieces(result, size), strict=True))
    return result


def _inside(program: Block, first: int, nbytes: int, size: int) -> Part | None:
    """The part that a run of elements is in; None where something is wrong with it."""
    part = program.part(first)
    return part if part is not None and first + nbytes <= part.limit and (first - part.start) % size == 0 else None


def read_run(program: Block, first: int, n: int, kind: np.dtype, what: str) -> Elements | None:
    """Returns where so many elements from an address on are once the core has taken the program's steps; None where it
    takes more than that: something is wrong, they are another rank's, or a loop looks at them."""
    size = kind.itemsize
    part = _inside(program, first, n * size, size)
    if part is None or program.loops or part.rank != program.launch.rank:
        return None
    account = program.account
    account.moved += -(-n * size // _SECTOR) * _SECTOR
    account.loads = True
    result = Elements(np.empty(n, kind))
    program.move(LOAD, what, first, result)
    return result


def write_run(program: Block, first: int, values: Elements, what: str) -> None:
    """Acts as write, of as many elements from an address on; they may be what read_run has returned."""
    size = values.data.itemsize
    part = _inside(program, first, values.nbytes, size)
    if part is None:
        write(program, np.arange(first, first + values.nbytes, size), values.data, what)
        return
    program.effects += 1
    if part.rank != program.launch.rank:
        reachable(program, part.rank, what)
        program.pay()
        program.store_afar()
        program.move(SCATTER, what, first, values)
        return
    program.account.moved += -(-values.nbytes // _SECTOR) * _SECTOR
    if program.account.spent:
        program.pay()
    program.move(STORE, what, first, values)


def _pieces(array: np.ndarray, size: int) -> list[bytes]:
    data = array.tobytes()
    return [data[i : i + size] for i in range(0, len(data), size)]


def _charge(
    program: Block, part: Part, flat: np.ndarray, hull: Hull, size: int, what: str, look: int, threads: bool
) -> None:
    if part.rank != program.launch.rank:
        reachable(program, part.rank, what)
    elif look == PLAIN:
        account = program.account
        account.moved += -(-flat.size * size // _SECTOR) * _SECTOR + hull[2] * _SECTOR // 2
        account.loads = True
        if program.checks:
            touch(program, what, _runs(flat, hull, size), READS, threads)
        return
    program.pay()
    if look == PLAIN:
        program.call(go.PrimGather, what, _runs(flat, hull, size), look, threads)
        return
    where = _words(flat, size) if look != FLAGGED and _may_be_words(flat, size) else _runs(flat, hull, size)
    with program.hearing():
        program.call(go.PrimGather, what, where, look, threads)


def touch(program: Block, what: str, where: Sequence[int], use: int, threads: bool) -> None:
    """Notes that the program uses runs of its rank's memory, which it does now."""
    line = program.line()
    if len(where) == 2:
        program.step(TOUCH, line, program.machine.name(what), where[0], where[1], use, threads)
    else:
        program.flush()
        go.PrimTouch(program.handle, line, what, where, use, threads)


def _runs(flat: np.ndarray, hull: Hull, size: int) -> list[int]:
    return runs(flat, size) if hull[2] else [hull[0], hull[1] - hull[0]]


_MOST_WORDS = 1 << 11
"""Elements of a block that are told apart as words."""


def _may_be_words(flat: np.ndarray, size: int) -> bool:
    return size in (4, 8) and 1 < flat.size <= _MOST_WORDS


def _words(flat: np.ndarray, size: int) -> list[int]:
    """The runs of elements of which each is a word by itself: it is loaded, or stored, at once."""
    return np.stack((flat, np.full_like(flat, size)), 1).ravel().tolist()


def are_packed(program: Block, kind: np.dtype, n: int) -> bool:
    """Says whether the elements that a block of threads stores may be data and flag at once: words of 8 bytes. In a
    kernel with volatile loads, which may wait until values have replaced a sentinel, those of 4 bytes are such, too."""
    if not program.checks or not 1 < n <= _MOST_WORDS:
        return False
    return (kind.itemsize == 8 and kind.kind in "iu") or (kind.itemsize == 4 and program.launch.loads_volatile)


def _elements(program: Block, part: Part, flat: np.ndarray, hull: Hull, kind: np.dtype, what: str) -> np.ndarray:
    size, first = kind.itemsize, hull[0] - part.start
    if first % size == 0 and not hull[2]:
        at = first // size
        return part.typed(kind)[at : at + flat.size].copy()
    _aligned(program, part, flat, size, what)
    return part.typed(kind)[(flat - part.start) // size]


def _by_part(program: Block, flat: np.ndarray, kind: np.dtype, what: str, look: int, threads: bool) -> np.ndarray:
    out = np.empty(flat.shape, kind)
    for chosen in _groups(program, flat):
        out[chosen] = read(program, flat[chosen], kind, what, look, threads)
    return out


def _groups(program: Block, flat: np.ndarray) -> list[np.ndarray]:
    of = np.array([program.part(a).start for a in flat.tolist()])  # type: ignore[union-attr]
    return [np.flatnonzero(of == start) for start in dict.fromkeys(of.tolist())]


def write(program: Block, flat: np.ndarray, values: np.ndarray, what: str, threads: bool = True) -> None:
    """Stores elements at addresses, of which there is at least one; where one occurs again the last element wins.

    Raises:
        NoLookError: the program only supposes what it would do.
    """
    if program.supposed is not None:
        raise NoLookError
    size = values.dtype.itemsize
    hull = lo, hi, gaps = _hull(flat, size)
    part = _parts(program, flat, hull, size, what)
    program.effects += 1
    if part is None:
        for chosen in _groups(program, flat):
            write(program, flat[chosen], values[chosen], what, threads)
        return
    if gaps or (lo - part.start) % size:
        _aligned(program, part, flat, size, what)
    if part.rank != program.launch.rank:
        reachable(program, part.rank, what)
        program.pay()
        program.store_afar()
        scatter(program, flat, values, what, threads)
        return
    program.account.moved += -(-flat.size * size // _SECTOR) * _SECTOR + gaps * _SECTOR // 2
    if not threads or program.account.spent:
        program.pay()
    program.flush()
    typed = part.typed(values.dtype)
    if gaps:
        typed[(flat - part.start) // size] = values
    else:
        at = (lo - part.start) // size
        typed[at : at + flat.size] = values
    where: Sequence[int] = lo, hi - lo
    if are_packed(program, values.dtype, flat.size):
        where = _words(flat, size)
    elif gaps and program.checks:
        where = runs(flat, size)
    touch(program, what, where, WRITES, threads)


def scatter(program: Block, flat: np.ndarray, values: np.ndarray, what: str, threads: bool) -> None:
    """Sends elements to addresses of another rank."""
    data = np.ascontiguousarray(values)
    if are_packed(program, data.dtype, flat.size):
        where = _words(flat, data.itemsize)
    else:
        where = _runs(flat, _hull(flat, data.itemsize), data.itemsize)
    place = data.__array_interface__["data"][0]
    program.call(go.PrimScatter, what, where, place, data.nbytes, threads)


def update(
    program: Block, flat: np.ndarray, operate: Any, kind: np.dtype, what: str, threads: bool, use: int
) -> np.ndarray:
    """Changes elements atomically, one after another, and returns the old ones.

    Args:
        operate: gives the new element, by the number of the element and the old one.
        use: one of ORDERS.
    """
    if program.supposed is not None:
        return program.suppose(flat, kind)
    size = kind.itemsize
    program.account.spent += program.rates.latency
    program.pay()
    program.arrive_home(use in (ATOMIC, RELEASES))
    program.release(use in (ATOMIC, RELEASES))
    program.flush()
    old = np.empty(flat.shape, kind)
    for i, address in enumerate(flat.tolist()):
        part = _parts(program, flat[i : i + 1], (address, address + size, 0), size, what)
        assert part is not None
        _aligned(program, part, flat[i : i + 1], size, what)
        if part.rank != program.launch.rank:
            reachable(program, part.rank, what)
        typed, at = part.typed(kind), (address - part.start) // size
        old[i] = typed[at]
        new = operate(i, typed[at])
        if new.tobytes() != typed[at].tobytes():
            typed[at] = new
            program.effects += 1
        elif program.loops:
            program.looks.append((address, typed[at].tobytes()))
    if program.checks:
        program.found(flat, old, what == "tl.atomic_xchg")
    words = [number for address in flat.tolist() for number in (address, size)]
    go.PrimTouch(program.handle, program.line(), what, words, use, threads)
    return old


__all__ = ["ATOMIC", "READS", "WRITES", "rank_of", "reachable", "read", "runs", "scatter", "update", "write"]
