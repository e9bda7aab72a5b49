"""Tiles: elements in the scratch memory of a PE. What is done with them is in _arithmetic.py and _memory.py."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from torchemu import dtypes
from torchemu.bridge.binding import go
from torchemu.language._pointer import count
from torchemu.language._program import Program, current

_VECTOR = ""  # the dtype of a computation on the vector pipe


class Tile:
    """Elements in scratch memory. A tile is a value: operations make new ones, and its bytes are free again when nobody
    has it any more.

    Attributes:
        dtype: of the elements.
        shape: row by row.
    """

    __slots__ = ("__weakref__", "_array", "_offset", "_program", "dtype", "shape")

    __array_ufunc__ = None  # NumPy's arrays do not calculate with tiles

    def __init__(self, program: Program, dtype: dtypes.dtype, shape: tuple[int, ...]) -> None:
        self._program, self.dtype, self.shape = program, dtype, shape
        self._offset = program.scratch.allocate(self, self.nbytes)
        self._array: np.ndarray = program.scratch.view(self._offset, dtype.numpy, shape)

    @property
    def numel(self) -> int:
        """The number of elements."""
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        """The number of bytes."""
        return self.numel * self.dtype.itemsize

    @property
    def address(self) -> int:
        """Returns the address of its bytes."""
        return self._program.scratch.start + self._offset

    def numpy(self) -> np.ndarray:
        """A copy of the elements. The program waits until its pipes have run empty: for looking at what it does."""
        self._program.call(go.PrimOrder, "pipe_barrier")
        return self._array.copy()

    def to(self, dtype: dtypes.dtype) -> Tile:
        """The elements, converted."""
        return _arithmetic.to(self, dtype)

    def bitcast(self, dtype: dtypes.dtype) -> Tile:
        """The same bits as elements of another dtype of this size."""
        return _elements.bitcast(self, dtype)

    def reshape(self, *shape: int) -> Tile:
        """The elements in another shape: a copy.

        Raises:
            ValueError: there are not so many.
        """
        return _arithmetic.reshape(self, *shape)

    def __add__(self, other: Operand) -> Tile:
        return _arithmetic.add(self, other)

    def __radd__(self, other: Operand) -> Tile:
        return _arithmetic.add(other, self)

    def __sub__(self, other: Operand) -> Tile:
        return _arithmetic.subtract(self, other)

    def __rsub__(self, other: Operand) -> Tile:
        return _arithmetic.subtract(other, self)

    def __mul__(self, other: Operand) -> Tile:
        return _arithmetic.multiply(self, other)

    def __rmul__(self, other: Operand) -> Tile:
        return _arithmetic.multiply(other, self)

    def __truediv__(self, other: Operand) -> Tile:
        return _arithmetic.divide(self, other)

    def __rtruediv__(self, other: Operand) -> Tile:
        return _arithmetic.divide(other, self)

    def __floordiv__(self, other: Operand) -> Tile:
        return _elements.floor_divide(self, other)

    def __rfloordiv__(self, other: Operand) -> Tile:
        return _elements.floor_divide(other, self)

    def __mod__(self, other: Operand) -> Tile:
        return _elements.remainder(self, other)

    def __rmod__(self, other: Operand) -> Tile:
        return _elements.remainder(other, self)

    def __and__(self, other: Operand) -> Tile:
        return _elements.bitwise_and(self, other)

    def __rand__(self, other: Operand) -> Tile:
        return _elements.bitwise_and(other, self)

    def __or__(self, other: Operand) -> Tile:
        return _elements.bitwise_or(self, other)

    def __ror__(self, other: Operand) -> Tile:
        return _elements.bitwise_or(other, self)

    def __xor__(self, other: Operand) -> Tile:
        return _elements.bitwise_xor(self, other)

    def __rxor__(self, other: Operand) -> Tile:
        return _elements.bitwise_xor(other, self)

    def __lshift__(self, other: Operand) -> Tile:
        return _elements.left_shift(self, other)

    def __rlshift__(self, other: Operand) -> Tile:
        return _elements.left_shift(other, self)

    def __rshift__(self, other: Operand) -> Tile:
        return _elements.right_shift(self, other)

    def __rrshift__(self, other: Operand) -> Tile:
        return _elements.right_shift(other, self)

    def __invert__(self) -> Tile:
        return _elements.bitwise_not(self)

    def __getitem__(self, key: Any) -> Tile:
        return _elements.part(self, key)

    def __neg__(self) -> Tile:
        return _arithmetic.negative(self)

    def __lt__(self, other: Operand) -> Tile:
        return _arithmetic.compared("lt", np.less, self, other)

    def __le__(self, other: Operand) -> Tile:
        return _arithmetic.compared("le", np.less_equal, self, other)

    def __gt__(self, other: Operand) -> Tile:
        return _arithmetic.compared("gt", np.greater, self, other)

    def __ge__(self, other: Operand) -> Tile:
        return _arithmetic.compared("ge", np.greater_equal, self, other)

    def __bool__(self) -> bool:
        raise TypeError("what a tile has is known only when its instruction has run: use where(), or numpy() to look")

    def __repr__(self) -> str:
        return f"Tile({list(self.shape)}, {self.dtype!r})"


Operand = Tile | int | float | bool
"""Operands of arithmetic with tiles."""


def new_tile(dtype: dtypes.dtype, shape: Sequence[int]) -> Tile:
    """A tile of undefined elements, of the running program.

    Raises:
        TypeError: of complex numbers, which PEs do not calculate with.
    """
    if dtype.is_complex:
        raise TypeError(f"a tile of {dtype!r}: tiles are of real numbers; give the kernel a view of their parts")
    return Tile(current(), dtype, tuple(shape))


def shape_of(value: int | Sequence[int]) -> tuple[int, ...]:
    """The shape that a call names: a number of elements, or a sequence of them."""
    if isinstance(value, Sequence):
        return tuple([count(n, "each number of a shape") for n in value])
    return (count(value),)


def computed(
    what: str, out: Tile, operands: Sequence[Any], compute: Callable[..., Any], ops: int = 0, unit: str = _VECTOR
) -> Tile:
    """Issues an instruction that makes a tile of others: compute gets their arrays when the instruction is due.

    Args:
        what: its name in reports.
        out: what it makes.
        operands: tiles and numbers.
        compute: gets an array for each tile, and the numbers as they are; its result is converted to out's dtype.
        ops: operations on the matrix pipe.
        unit: the dtype of those; "" is the vector pipe, on which the size of out counts.
    """
    if not out.numel:
        return out
    program = out._program
    tiles = [t for t in operands if isinstance(t, Tile) and t.numel]
    read = [number for t in tiles for number in (t.address, t.nbytes)]
    number = go.PrimCompute(program.handle, program.line(), what, unit, ops, out.address, out.nbytes, read)
    arrays = [t._array if isinstance(t, Tile) else t for t in operands]
    target = out._array

    def run() -> None:
        target[...] = compute(*arrays)

    program.machine.expect(number, program, run)
    return out


from torchemu.language import _arithmetic, _elements  # noqa: E402 (they need the class)
