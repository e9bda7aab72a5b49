"""Computations that are put off until their operands are known.

A device's host goes on while a collective lacks other ranks, and issues what needs its result. Here an operation is
computed when it is issued, if its operands are in place or come to be so in no simulated time, when other ranks have
run. Where these come later, or wait for this one, it is issued with stand-ins for the elements that are missing: they
tell its results' shapes and dtypes, and whatever is wrong with its arguments. It is then computed as soon as the
elements are there, whatever the rank does meanwhile, and whoever needs its results waits for that, as for those of a
collective; see torchemu/deferral.go. A call like one before needs no stand-ins: what that one showed is known.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from torchemu import dtypes, runtime
from torchemu.bridge.binding import go
from torchemu.frontends.numpy._tensor.core import Tensor, aliased_to
from torchemu.frontends.numpy._tensor.generator import Generator
from torchemu.frontends.numpy._tensor.storage import Storage

MOST = 1024
"""Computations that a rank may have put off, as many as a device has room for launches; with more its host waits."""

MOST_CALLS = 4096
"""Calls of which it is known what they give."""

Layouts = tuple[tuple[tuple[int, ...], dtypes.dtype], ...]
"""The shapes and dtypes of a call's results, all of them row-major."""

_PLAIN = (int, str, type(None), dtypes.dtype, np.dtype)
"""Types of values that decide on what a call does, and cannot change."""


class Deferrals:
    """The operations that the ranks of a World have put off.

    What a computation writes is pending until it is done, and so is, for who is to write there, what it reads and is
    not known yet. What it reads and is known, its tensors *lend* it: who is to write there gives it a copy first.
    """

    def __init__(self, world: runtime.World) -> None:
        self._world = world
        self._computations: dict[int, tuple[int, Callable[[], None], list[Any]]] = {}
        self._counts: Counter[int] = Counter()
        self._lent: WeakKeyDictionary[Storage, list[list[Any]]] = WeakKeyDictionary()
        self._layouts: dict[Any, Layouts] = {}

    def layouts(self, call: tuple[Any, ...]) -> Layouts | None:
        """Returns what calls give that are like this one: what is called, and what alike says of the rest. None:
        unknown."""
        return self._layouts.get(call)

    def learn(self, call: tuple[Any, ...], layouts: Layouts) -> None:
        """Says what they give."""
        if call[-1] is not None:
            if len(self._layouts) == MOST_CALLS:
                self._layouts.clear()
            self._layouts[call] = layouts

    def has_room(self, rank: int) -> bool:
        """Reports whether a rank may put off more."""
        return self._counts[rank] < MOST

    def add(self, name: str, compute: Callable[[], None], given: list[Any], targets: Sequence[Tensor]) -> None:
        """Puts off a computation of the running rank that finds its operands in a list, and writes into targets."""
        writes = [_here(t)._handle for t in targets]
        reads = []
        for i, t in enumerate(given):
            if isinstance(t, Tensor):
                if not t._storage.has_settled(t):
                    reads.append(_here(t)._number)
                elif t._storage.beside is None:
                    self._lend(t._storage, given)
                else:  # its rank writes there without telling
                    given[i] = np.array(elements(t))
        rank = runtime.current().rank
        number = go.Defer(self._world.handle, rank, name, reads, writes)
        self._computations[number] = rank, compute, given
        self._counts[rank] += 1

    def _lend(self, storage: Storage, given: list[Any]) -> None:
        storage.lends = storage.unsettled = True
        self._lent.setdefault(storage, []).append(given)

    def take_back(self, storage: Storage) -> None:
        """Gives computations copies of what a storage lends them."""
        for given in self._lent.pop(storage, ()):
            for i, t in enumerate(given):
                if isinstance(t, Tensor) and t._storage is storage:
                    given[i] = np.array(elements(t))
        storage.lends = False

    def compute_due(self) -> None:
        """Computes what can be. This may make other computations due."""
        while number := go.Due(self._world.handle):
            rank, compute, given = self._computations.pop(abs(number))
            self._counts[rank] -= 1
            if number > 0:
                self._compute(number, compute)
            self._give_back(given)

    def _compute(self, number: int, compute: Callable[[], None]) -> None:
        failure = "", ""
        try:
            compute()
        except Exception as error:  # whoever needs the result gets it
            failure = "RuntimeError", f"an operation that had to wait for other ranks failed: {error!r}"
        go.Computed(self._world.handle, number, *failure)

    def _give_back(self, given: list[Any]) -> None:
        for storage in {t._storage for t in given if isinstance(t, Tensor)}:
            lists = [other for other in self._lent.pop(storage, ()) if other is not given]
            storage.lends = bool(lists)
            if lists:
                self._lent[storage] = lists


def put_off(name: str, compute: Callable[[], None], given: list[Any], targets: Sequence[Tensor]) -> None:
    """Puts off a computation.

    Args:
        name: what reports call it.
        compute: does it.
        given: what it reads, as known_later has it, and then finds there.
        targets: what it writes.
    """
    current().add(name, compute, given, targets)


def _here(t: Tensor) -> Tensor:
    """The tensor itself, or of another rank's memory the one that stands beside it."""
    return t if t._storage.beside is None else t._storage.beside


def current() -> Deferrals:
    """Returns what is put off in the World of the running rank."""
    world = runtime.current().world
    if world.deferrals is None:
        world.deferrals = Deferrals(world)
    return world.deferrals


def alike(value: Any) -> Any:
    """Returns what a call's operands and parameters have in common with those of other calls, of which all are in order
    if one is, and give results of the same layouts: all but their floating-point numbers. None where others may
    differ."""
    if isinstance(value, Tensor):
        return (value.dtype, value._shape, value._strides) if value.dtype.is_inexact else None
    if isinstance(value, tuple):
        parts = tuple([alike(each) for each in value])
        return None if None in parts else parts
    if isinstance(value, _PLAIN):
        return type(value), value
    if isinstance(value, float):
        return (type(value),)
    if isinstance(value, dict):
        values = alike(tuple(value.values()))
        return None if values is None else (*value, values)
    return None


def stand_ins(operands: Sequence[Any]) -> list[Any]:
    """The operands' elements, ones where they are not known: those are harmless to divide by."""
    return [
        (elements(t) if t._storage.has_settled(t) else stand_in(t)) if isinstance(t, Tensor) else t for t in operands
    ]


def stand_in(t: Tensor) -> np.ndarray:
    """Ones that lie in memory as the tensor's elements do."""
    steps = t._steps()
    reach = 1 + sum((n - 1) * s for n, s in zip(t._shape, steps, strict=True)) if t.numel() else 0
    ones = np.ones(reach, t.dtype.numpy)
    return np.ndarray(t._shape, t.dtype.numpy, ones, 0, tuple([s * t.itemsize for s in steps]))


def elements(t: Tensor, writable: bool = False) -> np.ndarray:
    """The tensor's elements in place, without a look at what is pending on them."""
    return t._array if t._array is not None else t._look(writable)


def known_later(operands: Sequence[Any]) -> list[Any]:
    """The operands as a computation is to find them later: the program may give its tensors other shapes meanwhile."""
    return [_apart(t) if isinstance(t, Tensor) else (t.item() if isinstance(t, np.generic) else t) for t in operands]


def _apart(t: Tensor) -> Any:
    """Another tensor of the same elements, without what autograd knows. What is in the host's memory is copied:
    programs write there without telling."""
    if t.device.is_host:
        return np.array(t._read())
    return alias(t)


def alias(t: Tensor) -> Tensor:
    """Another tensor of the same elements, whatever becomes of the first."""
    other = aliased_to(t._storage, t.dtype, t.device, t._shape, t._steps(), t._offset)
    other._core = t._core
    return other


def drawn_again(params: Sequence[Any]) -> list[Any]:
    """The parameters of a call for when it is computed: random numbers are those that are next now."""
    return [p.clone_state() if isinstance(p, Generator) else p for p in params]


def found(operands: Sequence[Any]) -> list[Any]:
    """Returns what known_later made, as arrays and numbers, now that the elements are there."""
    return [elements(t) if isinstance(t, Tensor) else t for t in operands]
