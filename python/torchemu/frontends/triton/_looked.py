"""Values that a program has looked up in a word, and what it has made of them.

Who stores such a value in the word again has done no atomic addition: the checker is told of it. Where the program has
compared the value, it may have waited for its turn: what it stores then, of whatever it is made, is told of with
whether it would have gone on so with an earlier value of the word. So is an exchange of which it does not use what
was there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from torchemu.bridge.binding import go
from torchemu.frontends.triton._program import Block, current
from torchemu.frontends.triton._values import tensor


class Look:
    """A look at a word.

    Attributes:
        address, size: the word's.
        repeated: it is in a loop that may look again.
        decided: the program has compared what it has found, or what it has made of that.
        tests: the result of each comparison of what it has found, and what that would be for another value.
        made: it has compared what it has made of it.
    """

    __slots__ = ("address", "decided", "made", "repeated", "size", "tests")

    def __init__(self, address: int, size: int, repeated: bool) -> None:
        self.address, self.size, self.repeated = address, size, repeated
        self.decided, self.made = False, False
        self.tests: list[tuple[np.ndarray, Callable[[int], np.ndarray]]] = []

    def goes_on_alike(self, value: int) -> bool:
        """Says whether all comparisons would have come out as they have, had the word been a value."""
        return all(np.array_equal(np.broadcast_to(holds(value), found.shape), found) for found, holds in self.tests)


class Looked(tensor):
    """A value that has been looked up, or that is made of one.

    Attributes:
        look: the look.
        found: it is what the look has found, and not made of that.
    """

    __slots__ = ("found", "look")

    def __init__(self, value: tensor, look: Look, found: bool = False) -> None:
        super().__init__(value.data, value.dtype, value.lanes)
        self.look, self.found = look, found

    __hash__ = tensor.__hash__

    def to(self, *args: Any, **kwargs: Any) -> tensor:
        """Returns the elements as another type."""
        return Looked(super().to(*args, **kwargs), self.look)


def _made(name: str) -> Any:
    operate = getattr(tensor, name)

    def method(self: Looked, *others: Any) -> Any:
        return Looked(operate(self, *others), self.look)

    return method


def _compared(name: str) -> Any:
    operate = getattr(tensor, name)

    def method(self: Looked, other: Any) -> Any:
        look, kind, result = self.look, self.dtype, operate(self, other)
        look.decided = True
        if not self.found or not isinstance(result, tensor):
            look.made = True
            return result

        def holds(value: int) -> np.ndarray:
            return np.asarray(operate(tensor(np.array(value).astype(kind.numpy)[()], kind), other).data)

        look.tests.append((np.asarray(result.data), holds))
        return result

    return method


_ARITHMETIC = ("add", "radd", "sub", "rsub", "mul", "rmul", "and", "rand", "or", "ror", "xor", "rxor", "lshift")
for _name in _ARITHMETIC:
    setattr(Looked, f"__{_name}__", _made(f"__{_name}__"))
for _name in ("lt", "le", "gt", "ge", "eq", "ne"):
    setattr(Looked, f"__{_name}__", _compared(f"__{_name}__"))


def looked(program: Block, value: tensor, flat: np.ndarray) -> tensor:
    """Returns what a program has found at addresses, as a value that has been looked up where that is one word."""
    if program.supposed is not None or len(flat) == 0 or (flat != flat[0]).any():
        return value
    look = program.looked[int(flat[0])] = Look(int(flat[0]), value.dtype.itemsize, program.loops > 0)
    return Looked(value, look, True)


def note_bound(value: Any) -> None:
    """Tells the checker of a loop that has as many rounds as one look at a word has found."""
    if type(value) is Looked and value.look.size in (4, 8) and not value.look.decided and not value.look.repeated:
        program = current()
        program.flush()
        go.PrimBounds(program.handle, value.look.address, value.look.size)


def note_update(program: Block, value: Any, flat: np.ndarray, size: int, exchanges: bool = False) -> None:
    """Tells the checker that a program is about to store at addresses what it has made of a look at that word."""
    if not program.checks or size not in (4, 8) or len(flat) != 1:
        return
    address = int(flat[0])
    look = program.looked.pop(address, None)
    if type(value) is Looked and not value.look.decided and address == value.look.address:
        program.flush()
        go.PrimDerives(program.handle, address, size)
    elif look is not None and look.tests and not look.made and not exchanges:
        program.flush()
        alike = any(map(look.goes_on_alike, go.PrimPast(program.handle, address, size)))
        go.PrimDecides(program.handle, address, size, alike)
