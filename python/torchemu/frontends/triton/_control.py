"""Branches and loops of kernels, whose conditions may differ between threads.

A branch on such a condition runs both sides under masks, and what names have got is blended. A loop that looks at the
same words again and again, and does nothing else, parks until one of them changes.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from torchemu.bridge.binding import go
from torchemu.frontends.triton import _clock
from torchemu.frontends.triton import _types as t
from torchemu.frontends.triton._looked import note_bound
from torchemu.frontends.triton._operators import bits
from torchemu.frontends.triton._program import LIBRARIES, Block, NoLookError, current, running
from torchemu.frontends.triton._values import let, plain, tensor, truth, value_of


class Unbound:
    """A name's value where no thread has assigned it."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        raise UnboundLocalError(f"{self._name} is used, and no thread of the block has assigned it")


def _blended(names: Sequence[str], old: Mapping[str, Any], new: Mapping[str, Any], mask: np.ndarray) -> Any:
    values = []
    for name in names:
        if name not in new:
            values.append(Unbound(name))
        elif name not in old or old[name] is new[name]:
            values.append(new[name])
        else:
            values.append(_merged(name, old[name], new[name], mask))
    return values if len(values) > 1 else values[0]


def _merged(name: str, old: Any, new: Any, mask: np.ndarray) -> Any:
    if isinstance(old, tuple) and isinstance(new, tuple) and len(old) == len(new):
        return tuple(_merged(name, a, b, mask) for a, b in zip(old, new, strict=True))
    try:
        a, b = value_of(old), value_of(new)
    except TypeError:
        return new
    if a.shape or b.shape:
        return new if mask.all() else _refused(name)
    kind = b.dtype if b.dtype.is_ptr() or a.dtype is b.dtype else a.dtype
    data = np.where(mask, np.broadcast_to(b.data, mask.shape), np.broadcast_to(a.data, mask.shape))
    return tensor(data.astype(kind.numpy), kind, True)


def _refused(name: str) -> Any:
    raise TypeError(f"{name} is a block, and is assigned under a condition that differs between threads")


class Branch:
    """An ``if``.

    Attributes:
        then, other: whether its sides are to run.
        lanes: the condition differs between threads.
    """

    __slots__ = ("_followed", "_mask", "_outer", "_program", "_roles", "_saved", "lanes", "other", "then")

    _program: Block
    _mask: np.ndarray
    _outer: np.ndarray
    _followed: tuple[bool, bool]

    def __init__(self, then: bool) -> None:
        self.then, self.other, self.lanes, self._roles = then, not then, False, False

    def enter(self, names: Mapping[str, Any]) -> None:
        """Begins the first side under its mask."""
        self._saved = dict(names)
        self._program.mask = self._mask
        self._begin(self._followed[0] or (self._followed[1] and self.other))

    def turn(self, names: Mapping[str, Any]) -> None:
        """Begins the second side under its mask."""
        self._saved = dict(names)
        self._mask = self._outer & ~self._mask
        self._program.mask = self._mask
        self._begin(self._followed[0])

    def _begin(self, followed: bool) -> None:
        """Tells the core of a side after which other threads have theirs."""
        self._roles = followed and self._program.supposed is None
        if self._roles:
            go.PrimRoles(self._program.handle, True)

    def leave(self, names: Mapping[str, Any], assigned: Sequence[str]) -> Any:
        """Ends a side, and returns what the assigned names have now."""
        if self._roles:
            go.PrimRoles(self._program.handle, False)
        self._program.mask = None if self._outer is self._program.all else self._outer
        return _blended(assigned, self._saved, names, self._mask) if assigned else None


_YES, _NO = Branch(True), Branch(False)


def branch(condition: Any, is_followed: bool, has_else: bool) -> Branch:
    """Decides an ``if``.

    Args:
        is_followed: threads that are not in it come to another one, without a barrier before.
        has_else: there is a second side.

    Raises:
        TypeError: the condition is a block.
    """
    if not isinstance(condition, tensor):
        return _YES if condition else _NO
    if not condition.lanes:
        if condition.shape:
            raise TypeError(
                f"the condition of an if is a block of shape {list(condition.shape)}: it has to be a scalar; use "
                "tl.where, or masks"
            )
        return _YES if condition.data else _NO
    made = Branch(True)
    program = made._program = current()
    made._outer = program.active()
    made._mask = truth(condition).data & made._outer
    made.lanes, made._followed = True, (is_followed, has_else)
    made.then, made.other = bool(made._mask.any()), bool((made._outer & ~made._mask).any())
    return made


_Ends = Callable[[dict[int, bytes], int], bool]

_PATIENCE = 1 << 18
"""So often a loop may do nothing at all: one that looks at the time ends before."""


class Loop:
    """A ``while``.

    Args:
        names: what is assigned in it.
        text: its condition.
        uses: it only looks, and the kernel uses what the looks have found for more than its end.
    """

    def __init__(self, names: Sequence[str], text: str, uses: bool) -> None:
        self._names, self._text, self._uses = names, text, uses
        self._program = current()
        self._outer = self._program.mask
        self.lanes = False
        self._before: Any = None
        self._turns = 0  # in a row, of which each was as the one before
        self._effects = self._program.effects
        self._program.loops += 1
        self._from = len(self._program.looks)
        self._saved: dict[str, Any] = {}

    def goes(self, condition: Any, evaluate: Callable[[], Any] | None = None) -> bool:
        """Says whether there is another iteration, once something can have changed.

        Args:
            condition: what its evaluation has given.
            evaluate: evaluates it once more.

        Raises:
            TypeError: the condition is a block.
            NoLookError: it would go on, in what the program only supposes.
        """
        if isinstance(condition, tensor) and condition.shape:
            raise TypeError(f"the condition of a while is a block of shape {list(condition.shape)}")
        if self._program.checks and evaluate is not None and len(self._program.looks) > self._from:
            self._look_back(condition, evaluate)
        if isinstance(condition, tensor) and condition.lanes:
            self.lanes = True
            active = self._program.active() & truth(condition).data
            self._program.mask = active
            again = bool(active.any())
        else:
            again = bool(condition)
        if again:
            if self._program.supposed is not None:  # nothing changes that it waits for
                raise NoLookError
            self._watch()
        return again

    def _look_back(self, condition: Any, evaluate: Callable[[], Any]) -> None:
        """Tells the checker which earlier values of the words would have let go the threads that are let go now."""
        program = self._program
        let_go = program.active() & ~_held(condition)
        if not let_go.any():
            return
        looks = dict(program.looks[self._from :])

        def ends(then: dict[int, bytes], address: int) -> bool:
            return not (self._supposing(looks | then, address, evaluate, let_go) & let_go).any()

        for address, data in looks.items():
            if len(data) in (4, 8):
                self._try(address, len(data), ends, go.PrimRepeats if self._uses else go.PrimSuffices)
            if len(data) == 4 and address % 8 == 0 and len(looks.get(address + 4, b"")) == 4:
                self._try(address, 8, ends, go.PrimOutdated, 4)  # data and their flag, if one load has taken both

    def _try(self, address: int, size: int, ends: _Ends, tell: Callable[..., object], piece: int = 8) -> None:
        """Tells the checker of the first earlier value of a word with which the loop would have ended.

        Args:
            ends: says whether it ends with pieces of memory, of which one is at the address.
            piece: the bytes of a look, of which the word may be two.
        """
        program = self._program
        for value in go.PrimPast(program.handle, address, size):
            data = value.to_bytes(size, "little", signed=True)
            if ends({address + at: data[at : at + piece] for at in range(0, size, piece)}, address):
                tell(program.handle, program.line(), address, size, value, f"while {self._text}")
                break

    def _supposing(
        self, memory: dict[int, bytes], address: int, evaluate: Callable[[], Any], threads: np.ndarray
    ) -> np.ndarray:
        """Says which threads would go on with such memory: all, if the condition of some of them does not depend on the
        address, by a look only."""
        program = self._program
        kept = program.account, program.frame, program.effects, program.loops, program.mask
        program.mask = threads
        program.supposed, program.asked, program.account = memory, set(), _clock.Account()
        _clock.use(program.account)
        try:
            held = _held(evaluate())
        except Exception:  # whatever it does, it is not what has been done
            return program.all
        finally:
            program.supposed = None
            program.account, frame, program.effects, program.loops, program.mask = kept
            program.go_into(frame)
            _clock.use(program.account)
        return held if address in program.asked else program.all

    def _watch(self) -> None:
        program = self._program
        looks = program.looks[self._from :]
        del program.looks[self._from :]
        quiet, self._effects = program.effects == self._effects, program.effects
        if not quiet:
            self._before = None
            return
        frame = sys._getframe(2)
        local = frame.f_locals if self._names else {}
        now = looks, [_snapshot(local.get(name)) for name in self._names]
        if not looks:
            self._turn(now)
            return
        if self._before == now:
            program.account.settle(program.rates)  # of the looks: they are over long ago
            runs: list[int] = []
            seen = bytearray()
            for address, data in dict(looks).items():
                runs += (address, len(data))
                seen += data
            held = np.frombuffer(bytes(seen), np.uint8)
            place = held.__array_interface__["data"][0]
            program.call(go.PrimWatch, runs, place, len(seen), f"while {self._text}")
            self._before = None
            return
        self._before = now

    def _turn(self, now: tuple[list[Any], list[Any]]) -> None:
        """Notes an iteration that has looked at no memory, and has left the names that it assigns so.

        Raises:
            RuntimeError: there have been so many in a row that left all as it was that the loop has no end.
        """
        self._turns = self._turns + 1 if self._before == now else 0
        self._before = now
        if self._turns > _PATIENCE:
            raise RuntimeError(
                f"the loop (while {self._text}) has no end: it looks at no memory, and nothing that it assigns "
                "changes; who waits for a word has to load it again each time"
            )

    def begin(self, names: Mapping[str, Any]) -> None:
        """Begins an iteration of some of the threads."""
        self._saved = dict(names)

    def blend(self, names: Mapping[str, Any]) -> Any:
        """Returns what the assigned names have after an iteration of some of the threads."""
        return _blended(self._names, self._saved, names, self._program.active()) if self._names else None

    def end(self) -> None:
        """Ends the loop."""
        self._program.loops -= 1
        if not self._program.loops:
            self._program.looks.clear()
        self._program.mask = self._outer


def _held(condition: Any) -> np.ndarray:
    """Says for which threads a condition holds."""
    held = truth(condition).data if isinstance(condition, tensor) else bool(condition)
    return np.broadcast_to(held, current().all.shape)


def _snapshot(value: Any) -> Any:
    if isinstance(value, tensor):
        return np.asarray(value.data).tobytes()
    if isinstance(value, tuple):
        return [_snapshot(v) for v in value]
    return value


class Range:
    """A range of a kernel's loop.

    Attributes:
        start, stop, step: numbers, or values.
    """

    def __init__(self, start: Any, stop: Any = None, step: Any = 1, **_: Any) -> None:
        if stop is None:
            start, stop = 0, start
        note_bound(stop)
        self.start, self.stop, self.step = plain(start), plain(stop), plain(step)

    def bounds(self) -> tuple[tensor, tensor, tensor]:
        """Returns the bounds as values of one type."""
        values = [value_of(x) for x in (self.start, self.stop, self.step)]
        kind = max((v.dtype for v in values), key=lambda k: k.primitive_bitwidth)
        if not kind.is_integer:
            raise TypeError(f"a range of {kind}: bounds are whole numbers")
        return tuple(tensor(v.data.astype(kind.numpy), kind, v.lanes) for v in values)  # type: ignore[return-value]


class Each:
    """A ``for``."""

    def __init__(self, over: Any, names: Sequence[str]) -> None:
        self._over, self._names = over, names
        self.lanes = False
        self._saved: dict[str, Any] = {}

    def __iter__(self) -> Iterator[Any]:
        if not isinstance(self._over, Range):
            yield from plain(self._over)
            return
        start, stop, step = self._over.bounds()
        self.lanes = any(v.lanes for v in (start, stop, step))
        if self.lanes:
            yield from self._by_lane(start, stop, step)
            return
        kind, number = start.dtype, start.dtype.numpy.type
        for i in range(int(start.data), int(stop.data), int(step.data)):
            yield tensor(number(i), kind)

    def _by_lane(self, start: tensor, stop: tensor, step: tensor) -> Iterator[tensor]:
        program = current()
        outer = program.mask
        at = np.broadcast_to(start.data, program.all.shape).copy()
        try:
            while True:
                ahead = np.where(step.data > 0, at < stop.data, at > stop.data)
                mask = program.active() & ahead
                if not mask.any():
                    return
                program.mask = mask
                yield tensor(at.copy(), start.dtype, True)
                at = (at + step.data).astype(start.dtype.numpy)
                program.mask = outer
        finally:
            program.mask = outer

    def begin(self, names: Mapping[str, Any]) -> None:
        """Begins an iteration of some of the threads."""
        self._saved = dict(names)

    def blend(self, names: Mapping[str, Any]) -> Any:
        """Returns what the assigned names have after an iteration of some of the threads."""
        return _blended(self._names, self._saved, names, current().active()) if self._names else None


def decides(value: Any, stop: bool) -> bool:
    """Says whether a part of ``and`` or ``or`` that is known when the kernel is compiled decides the whole."""
    return not isinstance(value, tensor) and bool(value) is stop


def both(a: Any, b: Any) -> Any:
    """``and``."""
    return _logical("and", a, b)


def either(a: Any, b: Any) -> Any:
    """``or``."""
    return _logical("or", a, b)


def _logical(name: str, a: Any, b: Any) -> Any:
    if not isinstance(a, tensor):
        return b
    if not isinstance(b, tensor):
        return b if bool(b) is (name == "or") else a  # it decides, or not
    return bits(name, truth(a), truth(b))


def no(value: Any) -> Any:
    """``not``."""
    if not isinstance(value, tensor):
        return not value
    held = truth(value)
    return tensor(~held.data if held.shape or held.lanes else np.bool_(not held.data), t.int1, held.lanes)


def is_lanes(value: Any) -> bool:
    """Says whether a condition differs between threads."""
    return isinstance(value, tensor) and (value.lanes or bool(value.shape))


def pick(condition: tensor, a: Any, b: Any) -> tensor:
    """Returns a where a condition holds, else b."""
    if condition.shape:
        raise TypeError("the condition of an if expression is a block: it has to be a scalar; use tl.where")
    from torchemu.frontends.triton.face.language import where

    return where(condition, a, b)


def check(condition: Any, text: Any = "") -> None:
    """``assert``.

    Raises:
        AssertionError: it does not hold.
    """
    value = plain(condition)
    held = bool(np.all(value.data)) if isinstance(value, tensor) else bool(value)
    if not held:
        raise AssertionError(text)


def dropped(operate: Callable[..., Any], *args: Any, **kwargs: Any) -> None:
    """Calls an atomic operation of which the program makes no use of what it finds."""
    program = running()
    if program is not None:
        program.drops = True  # not in a function of the kernel's that has the name
    operate(*args, **kwargs)


def as_data(words: tuple[int, ...], load: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Loads words of which some, by their numbers, have no flag beside them."""
    program = current()
    program.data_words = words
    try:
        return load(*args, **kwargs)
    finally:
        program.data_words = ()


def enter() -> None:
    """Notes that a function of the kernel begins: operations are at its lines, unless it is a library's."""
    program = running()
    if program is None:
        return
    program.drops = False
    frame = sys._getframe(1)
    if program.frame is None or not frame.f_code.co_filename.endswith(LIBRARIES):
        program.go_into(frame)


def active_program() -> Block:
    """Returns the program that runs."""
    return current()


__all__ = ["Each", "Loop", "Range", "both", "branch", "check", "decides", "either", "is_lanes", "let", "no", "pick"]
