"""Values that a program has looked up in a word, and what it has made of them.

Who stores such a value in the word again has done no atomic addition: the checker is told of it. It is not where the
program has compared the value, for it may have waited for its turn.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from torchemu.bridge.binding import go
from torchemu.frontends.triton._program import Block
from torchemu.frontends.triton._values import tensor


class Look:
    """A look at a word.

    Attributes:
        address: the word's.
        decided: the program has compared what it has found, or what it has made of that.
    """

    __slots__ = ("address", "decided")

    def __init__(self, address: int) -> None:
        self.address, self.decided = address, False


class Looked(tensor):
    """A value that has been looked up, or that is made of one.

    Attributes:
        look: the look.
    """

    __slots__ = ("look",)

    def __init__(self, value: tensor, look: Look) -> None:
        super().__init__(value.data, value.dtype, value.lanes)
        self.look = look

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
        self.look.decided = True
        return operate(self, other)

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
    return Looked(value, Look(int(flat[0])))


def note_update(program: Block, value: Any, flat: np.ndarray, size: int) -> None:
    """Tells the checker that a program is about to store at addresses what it has made of a look at that word."""
    if type(value) is not Looked or size not in (4, 8) or value.look.decided:
        return
    if len(flat) == 1 and int(flat[0]) == value.look.address:
        program.flush()
        go.PrimDerives(program.handle, value.look.address, size)
