"""Lists of integers, as they cross to the Go core: the address and the length of an array."""

from __future__ import annotations

import functools
import itertools
from array import array
from collections.abc import Iterable


class Ints:
    """Integers of 64 bits, which stay at their address as long as this lives.

    Attributes:
        address, count: where they are, and how many.

    Raises:
        TypeError: they are no integers.
        ValueError: one does not fit 64 bits.
    """

    __slots__ = ("_array", "address", "count")

    def __init__(self, values: Iterable[int] = ()) -> None:
        if isinstance(values, bytes | bytearray):
            raise TypeError(f"{values!r} is no list of integers")
        try:
            self._array = array("q", values)
        except OverflowError:
            raise ValueError("a number is out of range: it must fit 64 bits") from None
        self.address, self.count = self._array.buffer_info()

    @classmethod
    def room(cls, count: int) -> Ints:
        """So many zeros, for the core to fill in."""
        return cls(itertools.repeat(0, count))

    def first(self, count: int) -> list[int]:
        """The first ones."""
        return self._array[:count].tolist()


@functools.lru_cache(1 << 12)
def kept(values: tuple[int, ...]) -> Ints:
    """Integers that are likely to cross again, such as a shape."""
    return Ints(values)


class Pieces(Ints):
    """Tensors, or parts of tensors, that a rank gives to a collective or receives from it, where that is not all of one
    tensor.

    Args:
        handles: of tensors.
        blocks: how many equal blocks each tensor is cut into: first come the first of each, then the second of each.
        rows: how many rows of the only tensor each block has, where blocks are not equal.
    """

    __slots__ = ()

    def __init__(self, handles: list[int], blocks: int = 1, rows: Iterable[int] = ()) -> None:
        super().__init__((blocks, len(handles), *handles, *rows))


NOTHING = Ints()
"""The pieces of a rank that gives nothing, or receives nothing."""
