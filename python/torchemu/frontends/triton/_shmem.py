"""Operations of a block, a warp or a thread on other ranks' memory: puts, gets, signals, waits, barriers."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from torchemu.bridge.binding import go
from torchemu.frontends.triton import _access, _granules, _threads
from torchemu.frontends.triton import _types as t
from torchemu.frontends.triton._program import AWAIT, Block, current, rank_of
from torchemu.frontends.triton._threads import ADD, SET, is_word, send_signal
from torchemu.frontends.triton._values import plain, tensor, value_of
from torchemu.language import _windows

_OFFSETS = (1 << 44) - 1
THREAD, WARP, BLOCK = "thread", "warp", "block"

EQ, NE, GT, GE, LT, LE = range(6)
"""Comparisons, as the core has them."""


class Rocm(int):
    """A constant of rocSHMEM's: some of its numbers mean something else than NVSHMEM's."""


_CMP = {0: EQ, 1: NE, 2: GT, 3: LE, 4: LT, 5: GE}
_OPS = {9: SET, 10: ADD}


def comparison(code: Any) -> int:
    """Returns the core's comparison for a constant.

    Raises:
        ValueError: there is none.
    """
    code = plain(code)
    if isinstance(code, Rocm):
        return int(code)
    if int(code) not in _CMP:
        raise ValueError(f"comparison {int(code)}: there are EQ 0, NE 1, GT 2, LE 3, LT 4 and GE 5")
    return _CMP[int(code)]


def operation(code: Any) -> int:
    """Returns the core's signal operation for a constant.

    Raises:
        ValueError: there is none.
    """
    code = plain(code)
    if isinstance(code, Rocm):
        return SET if code == 0 else ADD
    if int(code) not in _OPS:
        raise ValueError(f"signal operation {int(code)}: there are NVSHMEM_SIGNAL_SET 9 and NVSHMEM_SIGNAL_ADD 10")
    return _OPS[int(code)]


def pointer(x: Any, what: str) -> tensor:
    """Returns an address that a program gives.

    Raises:
        TypeError: it is no pointer, or a block of them.
    """
    x = plain(x)
    if type(x) is tensor and type(x.data) is np.int64 and type(x.dtype) is t.pointer_type:
        return x
    if not isinstance(x, tensor) or not x.dtype.is_ptr() or x.shape:
        kind = x.type if isinstance(x, tensor) else type(x).__name__
        raise TypeError(f"{what} is the pointer of a scalar, not {kind}")
    return x


def word_of(x: Any, what: str, sizes: tuple[int, ...] = (8,)) -> tensor:
    """Returns the address of a word.

    Raises:
        TypeError: it is of another type.
    """
    p = pointer(x, what)
    kind = p.dtype.element_ty
    if not kind.is_integer or kind.itemsize not in sizes:
        allowed = " or ".join(f"{8 * n}" for n in sizes)
        raise TypeError(f"{what} is a word of {kind}: it has to be an integer of {allowed} bits")
    return p


def _lanes(program: Block, group: str) -> np.ndarray:
    """The threads that do something for their group."""
    active = np.flatnonzero(program.active())
    if group == BLOCK:
        return active[:1]
    if group == WARP:
        return active[np.unique(active // 32, return_index=True)[1]]
    return active


def each(group: str, *values: Any) -> Iterator[list[int]]:
    """Returns what the values are for each that does something: all active threads, a warp or the block."""
    program = current()
    given = [value_of(v) for v in values]
    for lane in _lanes(program, group).tolist():
        yield [int(v.data[lane]) if v.lanes else int(v.data) for v in given]


def meet(group: str) -> None:
    """Makes what the group has done known to who acts for it."""
    if group == BLOCK:
        _threads.meet()


def on(program: Block, address: int, pe: int) -> int:
    """Returns the address of the same place on another rank.

    Raises:
        ValueError: there is no such rank, or its memory has not met with this one's.
    """
    ranks = program.launch.ranks
    if not 0 <= pe < len(ranks):
        raise ValueError(f"PE {pe} is not one of 0 to {len(ranks) - 1}")
    part = program.part(address)
    starts = None if part is None else _windows.alike(program.machine.world, part.start)
    if part is None or starts is None:
        return (ranks[pe] + 1) << 44 | address & _OFFSETS
    if ranks[pe] not in starts:
        raise ValueError(
            f"memory of rank {program.launch.rank} has not met with that of rank {ranks[pe]} (PE {pe}), only with that "
            f"of ranks {sorted(starts)}: call symm_mem.rendezvous with a group that has both"
        )
    return starts[ranks[pe]] + address - part.start


def _near(program: Block, pe: int) -> bool:
    return program.launch.ranks[pe] in program.launch.node


def put(
    what: str, group: str, later: bool, dest: Any, source: Any, nbytes: Any, pe: Any, signal: tuple[Any, ...] = ()
) -> None:
    """Writes bytes to another rank's memory, with a signal after them if one is given: word, value, operation."""
    program = current()
    to, source = pointer(dest, "dest"), pointer(source, "source")
    word = word_of(signal[0], "sig_addr") if signal else None
    op = operation(signal[2]) if signal else ADD
    meet(group)
    program.pay()
    program.effects += 1
    values = (to, source, nbytes, pe, word if word is not None else 0, signal[1] if signal else 0)
    for a, b, n, peer, at, value in each(group, *values):
        place = on(program, a, peer)
        if rank_of(place) == program.launch.rank:
            program.put_home()
        _put_one(program, what, later, (place, b, n), (on(program, at, peer) if signal else 0, op, value))
        if not later and not _near(program, peer):
            program.call(go.PrimOrder, "quiet")
    meet(group)


def put_word(group: str, dest: Any, source: Any, nbytes: int, pe: Any) -> None:
    """Writes a word to another rank's memory, for which that may wait."""
    program = current()
    to, of = pointer(dest, "dest"), pointer(source, "source")
    meet(group)
    program.pay()
    program.effects += 1
    kind = np.dtype(f"i{nbytes}")
    value = _access.read(program, np.array([int(of.data)]), kind, "putmem", threads=False)[0]
    for at, peer in each(BLOCK, to, pe):
        send_signal(program, on(program, at, peer), nbytes, SET, int(value))
    meet(group)


def _put_one(program: Block, what: str, later: bool, move: tuple[int, int, int], signal: tuple[int, int, int]) -> None:
    to, source, n = move
    word, op, value = signal
    if n < 0:
        raise ValueError(f"{what} of {n} bytes")
    if word:
        _warn(program, word, 8)
    if n == 0 or to == source:  # bytes that are put where they are stay there
        if word:
            program.call(go.PrimSignal, word, 8, op, value)
        return
    if later and not _granules.is_symmetric(program, source):
        program.landing = True
    with _naming(program, what, {"source": source, "dest": to}, n):
        program.call(go.PrimPut, to, source, n, not later, word, 8 if word else 0, op, value)


@contextmanager
def _naming(program: Block, what: str, places: dict[str, int], n: int) -> Iterator[None]:
    """Returns a context whose errors name the first of the places that has not so many bytes."""
    try:
        yield
    except ValueError as error:
        parts = {name: program.part(at) for name, at in places.items()}
        which = [name for name, part in parts.items() if part is None or places[name] + n > part.end]
        raise ValueError(f"{', '.join([what, *which[:1]])}: {error}") from None


def _warn(program: Block, address: int, nbytes: int) -> None:
    part = program.part(address)
    if part is not None:
        _granules.inside(part, address, nbytes)


def get(what: str, group: str, later: bool, dest: Any, source: Any, nbytes: Any, pe: Any) -> None:
    """Brings bytes from another rank's memory."""
    program = current()
    to, source = pointer(dest, "dest"), pointer(source, "source")
    meet(group)
    program.pay()
    program.effects += 1
    for a, b, n, peer in each(group, to, source, nbytes, pe):
        if n < 0:
            raise ValueError(f"{what} of {n} bytes")
        if n:
            far = on(program, b, peer)
            with _naming(program, what, {"source": far, "dest": a}, n):
                program.call(go.PrimGet, a, far, n, not later)
            program.landing = program.landing or later
    meet(group)


def signal_op(sig_addr: Any, signal: Any, sig_op: Any, pe: Any) -> None:
    """Sets or adds to a word of another rank: each active thread."""
    program, word, op = current(), word_of(sig_addr, "sig_addr"), operation(sig_op)
    program.pay()
    program.effects += 1
    signals = each(THREAD, word, signal, pe)
    for at, value, peer in dict.fromkeys(map(tuple, signals)) if op == SET else signals:
        _warn(program, on(program, at, peer), 8)
        send_signal(program, on(program, at, peer), 8, op, value)


def wait_until(sig_addr: Any, cmp: Any, value: Any, nbytes: int = 8) -> tensor:
    """Waits until words of the own rank compare so with a value: each active thread for its own. Returns the words."""
    program, word = current(), word_of(sig_addr, "sig_addr", (nbytes,))
    how = comparison(cmp)
    program.pay()
    waits = dict.fromkeys((at, wanted) for at, wanted in each(THREAD, word, value))
    line = program.line()
    with program.hearing():
        for at, wanted in waits:
            _warn(program, at, nbytes)
            _await(program, line, (at, nbytes), how, wanted)
    program.flush()
    kind = word.dtype.element_ty
    seen = [_word(program, at, kind) for at, _ in waits]
    if not word.lanes or not seen:
        return tensor(seen[0] if seen else kind.numpy.type(0), kind)
    found = {at: v for (at, _), v in zip(waits, seen, strict=True)}
    addresses = word.data.tolist()
    return tensor(np.array([found.get(a, 0) for a in addresses], kind.numpy), kind, True)


def _word(program: Block, address: int, kind: t.dtype) -> Any:
    part = program.part(address)
    assert part is not None
    return part.typed(kind.numpy)[(address - part.start) // kind.itemsize]


def _await(program: Block, line: int, word: tuple[int, int], how: int, wanted: int, use: int = _access.ATOMIC) -> None:
    if is_word(program, *word):
        program.step(AWAIT, line, *word, how, wanted, use)
    else:
        program.call(go.PrimAwait, *word, how, wanted)  # says what is wrong


def whole(x: Any) -> int:
    """Returns a number that may be a value."""
    return x if type(x) is int else int(value_of(x).data)


def wait_equal(words: Any, n: Any, value: Any, scope: str | None = None, semantic: str | None = None) -> None:
    """Waits until each of n words, of any rank in the node, is equal to a value."""
    program, p = current(), word_of(words, "barrierPtrs", (4, 8))
    size = p.dtype.element_ty.itemsize
    program.pay()
    first, wanted = int(p.data if not p.lanes else p.data[0]), whole(value)
    rank = rank_of(first)
    if rank != program.launch.rank:
        _access.reachable(program, rank, "wait")
    line = program.line()
    count = int(plain(n))
    _warn(program, first, count * size)
    use = _access.ORDERS.get(semantic, _access.ATOMIC)
    places = [first + i * size for i in range(count)]
    _access.narrowed(program, places, size, "wait", scope)
    for at in places:
        _await(program, line, (at, size), EQ, wanted, use)


def notify(ptr: Any, rank: Any, value: Any, op: int) -> None:
    """Sets or adds to a word of a rank: thread 0."""
    program, word = current(), word_of(ptr, "ptr")
    if not program.one():
        return
    program.pay()
    program.effects += 1
    at = int(word.data[0] if word.lanes else word.data)
    peer, number = whole(rank), whole(value)
    target = on(program, at, peer)
    _warn(program, target, 8)
    if rank_of(target) == program.launch.rank:
        program.release(False)
    send_signal(program, target, 8, op, number)


def order(kind: str) -> None:
    """Waits for, or fences, what the program has sent."""
    program = current()
    program.pay()
    with program.hearing():
        if kind == "fence":
            program.fence()
        else:
            program.call(go.PrimOrder, kind)


# -- teams

WORLD, SHARED, NODE, SAME_MYPE_NODE = range(4)


def team(program: Block, number: Any) -> tuple[int, ...]:
    """Returns the PEs of a team.

    Raises:
        ValueError: there is no such team.
    """
    number, launch = whole(number), program.launch
    every = range(len(launch.ranks))
    if number == WORLD:
        return tuple(every)
    near = tuple(pe for pe in every if launch.ranks[pe] in launch.node)
    if number in (SHARED, NODE):
        return near
    if number == SAME_MYPE_NODE:
        size = len(near)
        return tuple(pe for pe in every if pe % size == launch.index % size)
    raise ValueError(f"team {number}: there are WORLD 0, SHARED 1, NODE 2 and SAME_MYPE_NODE 3")


def barrier(group: str, number: Any, quiet: bool) -> None:
    """Waits until all PEs of a team have come here; with quiet, until what they have sent before has landed."""
    program = current()
    members = tuple(program.launch.ranks[pe] for pe in team(program, number))
    meet(group)
    program.pay()
    program.effects += 1
    if quiet:
        program.call(go.PrimOrder, "quiet")
    sync_with(team_barrier(program, members))
    meet(group)


def sync_with(barrier: int) -> None:
    """Waits until all ranks of a barrier have come here."""
    program = current()
    program.flush()
    program.sync_with(barrier)


def team_barrier(program: Block, ranks: tuple[int, ...]) -> int:
    """Returns the barrier of a team."""
    machine = program.machine
    return machine._once(
        ("a team of shmem", ranks), lambda: go.PrimBarrier(machine.handle, "of a team of PEs", ranks, "phase")
    )


def collect(group: str, number: Any, dest: Any, source: Any, nbytes: int, root: int | None) -> None:
    """Puts a PE's bytes to all of a team: each PE's one after another, or those of the root."""
    program = current()
    pes = team(program, number)
    to, source = pointer(dest, "dest"), pointer(source, "source")
    own = pes.index(program.launch.index)
    if root is None or pes[root] == program.launch.index:
        for pe in pes:
            shifted = tensor(to.data + (own * nbytes if root is None else 0), to.dtype, to.lanes)
            put("fcollect", group, False, shifted, source, nbytes, pe)
    barrier(group, number, True)


def exchange(number: Any, dest: Any, source: Any, nbytes: int) -> None:
    """Puts a part of a PE's bytes to each of a team, and each PE's where it is among them: the block."""
    program = current()
    pes = team(program, number)
    to, source = pointer(dest, "dest"), pointer(source, "source")
    own = pes.index(program.launch.index)
    for i in range(len(pes)):
        peer = (own + i) % len(pes)  # not all begin with the same
        part = tensor(source.data + peer * nbytes, source.dtype, source.lanes)
        put("alltoall", BLOCK, False, tensor(to.data + own * nbytes, to.dtype, to.lanes), part, nbytes, pes[peer])
    barrier(BLOCK, number, True)


def reduce(number: Any, dest: Any, source: Any, n: int, combine: Callable[[Any, Any], Any]) -> None:
    """Combines the elements of a team, in the order of PEs, on each of them.

    Args:
        combine: makes an array of two.
    """
    program = current()
    to, of = pointer(dest, "dest"), pointer(source, "source")
    barrier(BLOCK, number, True)  # all have what they bring
    if n:
        parts = [_fetched(program, on(program, int(of.data), pe), n, of) for pe in team(program, number)]
        total = functools.reduce(combine, parts)
    barrier(BLOCK, number, False)  # all have fetched it: it may be written to
    if n:
        _access.write(program, int(to.data) + np.arange(n) * to.dtype.step, total.astype(parts[0].dtype), "reduce")
    meet(BLOCK)


def _fetched(program: Block, address: int, n: int, of: tensor) -> np.ndarray:
    """Returns elements of another rank, on whichever node it is."""
    kind = of.dtype.element_ty.numpy
    program.pay()
    program.call(go.PrimGather, "reduce", [address, n * kind.itemsize], _access.PLAIN, True)
    part = program.part(address)
    if part is None or address + n * kind.itemsize > part.end:
        raise ValueError(f"reduce of {n} elements from {address:#x}: they are in no window, or beyond its end")
    at = (address - part.start) // kind.itemsize
    return part.typed(kind)[at : at + n].copy()


def variants(make: Callable[[str], Callable[..., Any]], name: str, doc: str) -> dict[str, Callable[..., Any]]:
    """Returns a function for a thread, a warp and a block, by their names."""
    made = {}
    for group, suffixes in ((THREAD, ("",)), (WARP, ("_warp", "_wave")), (BLOCK, ("_block", "_wg"))):
        for suffix in suffixes:
            function = make(group)
            function.__name__ = name + suffix
            function.__doc__ = f"{doc}, by each active thread." if group == THREAD else f"{doc}, by the {group}."
            made[name + suffix] = function
    return made
