"""Pointers: places in the memory of ranks."""

from __future__ import annotations

from typing import Any

from torchemu import dtypes
from torchemu.bridge.binding import go
from torchemu.language._program import current


class Pointer:
    """The place of an element in the memory of a rank. ``p + i`` is the place of the i-th element after it.

    Attributes:
        address: the byte's, in the one address space of all ranks.
        dtype: of the elements.
    """

    __slots__ = ("_ranks", "address", "dtype")

    def __init__(self, address: int, dtype: dtypes.dtype, ranks: tuple[int, ...]) -> None:
        self.address, self.dtype, self._ranks = address, dtype, ranks

    def on(self, rank: int) -> Pointer:
        """The same place in the memory of another rank: of symmetric memory.

        Raises:
            ValueError: there is no such rank.
        """
        if not 0 <= rank < len(self._ranks):
            raise ValueError(f"rank {rank} is not one of 0 to {len(self._ranks) - 1}")
        machine = current().machine.handle
        return Pointer(go.PrimOnRank(machine, self.address, self._ranks[rank]), self.dtype, self._ranks)

    def __add__(self, elements: int) -> Pointer:
        if not hasattr(elements, "__index__"):
            raise TypeError(f"a pointer can be moved by a whole number of elements, not by {elements!r}")
        return Pointer(self.address + elements.__index__() * self.dtype.itemsize, self.dtype, self._ranks)

    __radd__ = __add__

    def __sub__(self, elements: int) -> Pointer:
        return self + -elements

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Pointer) and (other.address, other.dtype) == (self.address, self.dtype)

    def __hash__(self) -> int:
        return hash((self.address, self.dtype))

    def __repr__(self) -> str:
        return f"Pointer({self.address:#x}, {self.dtype!r})"


def checked(value: Any, what: str) -> Pointer:
    """The value, if it is a pointer.

    Raises:
        TypeError: it is not.
    """
    if not isinstance(value, Pointer):
        kind = type(value).__name__
        raise TypeError(f"{what} must be a pointer, such as a tensor that the kernel was given; not {kind}")
    return value


def count(value: Any, what: str = "n") -> int:
    """A number of elements.

    Raises:
        TypeError, ValueError: it is not a whole number; it is negative.
    """
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise TypeError(f"{what} must be a whole number, not {value!r}")
    if value.__index__() < 0:
        raise ValueError(f"{what} must be 0 or more, not {value}")
    return value.__index__()
