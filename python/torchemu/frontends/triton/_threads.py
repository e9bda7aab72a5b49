"""Operations of a block's threads, by themselves and between each other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from torchemu.bridge.binding import go
from torchemu.frontends.triton import _access
from torchemu.frontends.triton import _types as t
from torchemu.frontends.triton._conversions import cast
from torchemu.frontends.triton._looked import looked, note_update
from torchemu.frontends.triton._memory import _pointer, atomic, loaded
from torchemu.frontends.triton._program import MEET, SIGNAL, Block, current, rank_of
from torchemu.frontends.triton._values import plain, tensor, value_of

WARP = 32

ADD, SET = 0, 1
"""The operations of a signal on a word, as the core has them."""


def _number(n: int, kind: t.dtype = t.int32) -> tensor:
    return tensor(kind.numpy.type(n), kind)


def tid(axis: Any = 0) -> tensor:
    """The number of the thread in its block: another one in each thread."""
    program = current()
    if int(plain(axis)) != 0:
        return _number(0)
    return tensor(np.arange(program.threads, dtype=np.int32), t.int32, True)


def ntid(axis: Any = 0) -> tensor:
    """Returns how many threads a block has."""
    return _number(current().threads if int(plain(axis)) == 0 else 1)


def laneid() -> tensor:
    """The number of the thread in its warp."""
    return tensor(np.arange(current().threads, dtype=np.int32) % WARP, t.int32, True)


def warp_id() -> tensor:
    """The number of the thread's warp."""
    return tensor(np.arange(current().threads, dtype=np.int32) // WARP, t.int32, True)


def num_warps() -> int:
    """Returns how many warps a block has."""
    return current().threads // WARP


def num_threads() -> int:
    """Returns how many threads a block has."""
    return current().threads


def threads_per_warp() -> int:
    """32."""
    return WARP


def smid() -> tensor:
    """The multiprocessor that the block is on."""
    return _number(go.PrimSlot(current().handle))


def globaltimer() -> tensor:
    """The simulated time in nanoseconds, as int64."""
    program = current()
    program.pay()
    program.flush()
    return _number(go.PrimNow(program.machine.handle) // 1000, t.int64)


def clock() -> tensor:
    """Acts as globaltimer."""
    return globaltimer()


def syncthreads() -> None:
    """A barrier of the block's threads.

    Raises:
        RuntimeError: with --check, under a condition that does not hold for all of them.
    """
    program = current()
    if program.checks and not program.active().all():
        come = np.flatnonzero(program.active())
        raise RuntimeError(
            f"a barrier of all {program.threads} threads of a block is under a condition that holds for {len(come)} of "
            f"them, of which thread {come[0]} is the first: the others do not come, and some wait for ever, or go on "
            "too early; it has to be outside of the branch or loop"
        )
    meet()


def meet() -> None:
    """A barrier of the block's threads, or of some of them by a number."""
    program = current()
    program.account.spent += program.rates.barrier
    if program.checks:
        program.step(MEET, program.line())


def fence(semantic: Any = None, scope: Any = None) -> None:
    """Makes what the thread has stored before land before what it stores after, unless that is for its block only."""
    program = current()
    program.pay()
    if plain(scope) not in ("cta", "block"):
        with program.hearing():
            program.fence()


def ld(ptr: Any, scope: Any = None, semantic: Any = None) -> tensor:
    """The word at a place, as it is now: each thread's. The load comes after what was before the signals that made the
    word what it is, unless the program says that it is relaxed."""
    p, how = _pointer(ptr, "ld"), plain(semantic)
    if how == "acquire":
        _narrowed(p, scope, "ld")
    found = _each(loaded(p, None, None, "ld", _access.RELAXED_LOOK if how == "relaxed" else _access.FRESH))
    program = current()
    return looked(program, found, p.data.ravel()) if program.checks else found


def ld_acquire(ptr: Any, scope: Any = None) -> tensor:
    """Acts as ld, after what was before the signals that made the word what it is."""
    return ld(ptr, scope, "acquire")


def _narrowed(p: tensor, scope: Any, what: str) -> None:
    """Notes the scope that a program gives an operation on a word that orders others."""
    program = current()
    addresses = np.broadcast_to(p.data, program.all.shape)[program.active()]
    scope = plain(scope)
    _access.narrowed(program, addresses.tolist(), p.dtype.element_ty.itemsize, what, _SCOPES.get(scope, scope))


def _each(x: tensor) -> tensor:
    if x.lanes or current().mask is None:
        return x
    return tensor(np.full(current().threads, x.data), x.dtype, True)


def st(ptr: Any, val: Any, scope: Any = None, semantic: Any = None) -> None:
    """Stores a word, which others may look at: each active thread. The store tells them what was before it, unless the
    program says that it is relaxed."""
    p, program, use = _pointer(ptr, "st"), current(), _access.ORDERS.get(plain(semantic), _access.ATOMIC)
    kind = p.dtype.element_ty
    value = cast(val, kind)
    active = program.active()
    if not active.any():
        return
    if use == _access.RELEASES:
        _narrowed(p, scope, "st")
        fence()
    flat = p.data[active].astype(np.int64) if p.lanes else np.array([p.data], np.int64)
    note_update(program, val, flat, kind.numpy.itemsize)
    if not p.lanes:
        last = value.data[active][-1:] if value.lanes else np.array([value.data])
        store_words(flat, last.astype(kind.numpy), "st", use)
        return
    data = np.broadcast_to(value.data, active.shape)[active]
    store_words(flat, data.astype(kind.numpy), "st", use)


def store_words(flat: np.ndarray, data: np.ndarray, what: str, use: int) -> None:
    """Stores words at addresses one by one, so that whoever sees one knows what was before; use is one of
    _access.ORDERS."""
    program, size = current(), data.dtype.itemsize
    program.pay()
    program.effects += 1
    for address, value in zip(flat.tolist(), data, strict=True):
        if rank_of(address) != program.launch.rank:
            _access.reachable(program, rank_of(address), what)
        if size in (4, 8) and rank_of(address) != program.launch.rank:
            bits = int(value.view(f"i{size}"))
            send_signal(program, address, size, SET, bits, use)
        elif rank_of(address) != program.launch.rank:
            _access.write(program, np.array([address]), np.array([value]), what, False)
        else:
            _put_here(address, np.array([value]), what, use)


def _put_here(address: int, value: np.ndarray, what: str, use: int) -> None:
    program, size = current(), value.dtype.itemsize
    part = program.part(address)
    if part is None or address + size > part.end:
        _access.read(program, np.array([address]), value.dtype, what)
        return
    program.arrive_home(use == _access.RELEASES)
    program.release(use == _access.RELEASES)
    program.flush()
    place = (address - part.start) // size
    typed = part.typed(value.dtype)
    old, typed[place] = typed[place : place + 1].copy(), value[0]
    if program.checks:
        program.found(np.array([address]), old, True)
    _access.touch(program, what, (address, size), use, False)


def is_word(program: Block, at: int, size: int) -> bool:
    """Says whether a word of so many bytes can be at an address."""
    part = program.part(at)
    return part is not None and at + size <= part.end and at % size == 0


def send_signal(program: Block, at: int, size: int, op: int, value: int, use: int = _access.ATOMIC) -> None:
    """Signals to a word of any rank: op is ADD or SET, and use as in _access."""
    if is_word(program, at, size):
        program.step(SIGNAL, program.line(), at, size, op, value, use)
    else:
        program.call(go.PrimSignal, at, size, op, value)  # says what is wrong


def atomic_add(ptr: Any, val: Any, scope: Any = None, semantic: Any = "relaxed") -> tensor:
    """Adds to a word and returns the old one: once for each active thread."""
    return _by_thread("add", ptr, [val], semantic, scope)


def atomic_cas(ptr: Any, cmp: Any, val: Any, scope: Any = None, semantic: Any = "relaxed") -> tensor:
    """Sets a word that is equal to a value and returns the old one: once for each active thread."""
    return _by_thread("cas", ptr, [cmp, val], semantic, scope)


_SCOPES = {"gpu": "gpu", "sys": "sys", "cta": "cta", "system": "sys", "agent": "gpu"}


def _by_thread(name: str, ptr: Any, values: Sequence[Any], semantic: Any, scope: Any) -> tensor:
    p, program = _pointer(ptr, f"atomic_{name}"), current()
    if not p.lanes:
        p = tensor(np.full(program.threads, p.data), p.dtype, True)
    return atomic(name, p, values, None, plain(semantic), _SCOPES.get(plain(scope), plain(scope)))


def shuffled(value: Any, lanes: np.ndarray) -> tensor:
    """The values of other threads of the warp."""
    v, program = value_of(value), current()
    data = np.broadcast_to(v.data, program.all.shape)
    base = np.arange(program.threads) // WARP * WARP
    return tensor(data[base + lanes], v.dtype, True)
