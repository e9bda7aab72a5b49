"""Atomic operations on elements of memory that tiles say: each element's old value comes back in a tile.

Elements are changed one after another in the order of the tile, row by row: where two have one place, the later one
finds what the earlier one has left.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from torchemu.bridge.binding import go
from torchemu.language._looked import note_update
from torchemu.language._memory import word_of
from torchemu.language._pointer import Pointer, checked
from torchemu.language._program import ATOMIC, Program, current
from torchemu.language._tile import Operand, Tile, computed, new_tile

_ATOMIC = 2  # how memory is used, as the core has it
_RANK_SHIFT = 44  # bits of an offset in an address
_LATENCY = 5  # the place of memory's among the rates of a PE
_WORDS = ("int32", "int64")


def atomic_add(word: Pointer, value: Operand, index: Tile | None = None, mask: Any = None) -> Any:
    """Adds to memory of any rank and returns its old value: of a word, where the value is a number and there is no
    index; else element by element, and the old values are a tile.

    Args:
        word: the word, or the place from which elements are counted.
        value: a number, or a tile.
        index: which elements, as a tile of whole numbers; None for those one after another.
        mask: which elements of the tile are to be changed, as bools or a tile of them; of others 0 comes back.

    Raises:
        ValueError: an element is in no window; shapes that do not go together.
        TypeError: a dtype with which this cannot be done.
        NotImplementedError: elements of another rank's memory that are no words, or an operation that is not add,
            exchange or cas.
    """
    if _is_word(value, index):
        return _of_word("add", word, 0, value)
    return _changed("add", word, (value,), index, mask)


def atomic_exchange(word: Pointer, value: Operand, index: Tile | None = None, mask: Any = None) -> Any:
    """Acts as atomic_add, but sets."""
    if _is_word(value, index):
        return _of_word("exchange", word, 0, value)
    return _changed("exchange", word, (value,), index, mask)


def atomic_cas(word: Pointer, wanted: Operand, value: Operand, index: Tile | None = None, mask: Any = None) -> Any:
    """Acts as atomic_add, but sets what has the wanted value."""
    if _is_word(value, index) and not isinstance(wanted, Tile):
        return _of_word("compare_swap", word, wanted, value)
    return _changed("cas", word, (wanted, value), index, mask)


def atomic_max(word: Pointer, value: Operand, index: Tile | None = None, mask: Any = None) -> Tile:
    """Acts as atomic_add with a tile, but keeps the larger one; NaN where one is."""
    return _changed("max", word, (value,), index, mask)


def atomic_min(word: Pointer, value: Operand, index: Tile | None = None, mask: Any = None) -> Tile:
    """Acts as atomic_add with a tile, but keeps the smaller one; NaN where one is."""
    return _changed("min", word, (value,), index, mask)


def atomic_and(word: Pointer, value: Operand, index: Tile | None = None, mask: Any = None) -> Tile:
    """Acts as atomic_add with a tile, but a & b, of whole numbers or bools."""
    return _changed("and", word, (value,), index, mask)


def atomic_or(word: Pointer, value: Operand, index: Tile | None = None, mask: Any = None) -> Tile:
    """Acts as atomic_add with a tile, but a | b, of whole numbers or bools."""
    return _changed("or", word, (value,), index, mask)


def atomic_xor(word: Pointer, value: Operand, index: Tile | None = None, mask: Any = None) -> Tile:
    """Acts as atomic_add with a tile, but a ^ b, of whole numbers or bools."""
    return _changed("xor", word, (value,), index, mask)


_BITWISE = {"and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor}
_OPERATIONS: dict[str, Callable[..., Any]] = {
    "add": np.add,
    "max": np.maximum,
    "min": np.minimum,
    "exchange": lambda old, value: value,
    "cas": lambda old, wanted, value: np.where(old == wanted, value, old),
    **_BITWISE,
}


def _is_word(value: Any, index: Any) -> bool:
    return index is None and not isinstance(value, Tile)


def _of_word(name: str, word: Pointer, wanted: Any, value: Any) -> int:
    program, at = current(), word_of(word)
    if program.checks and name == "exchange":
        note_update(program, at, value)
    return program.ask(go.PrimAtomic, name, *at, wanted, value, ATOMIC)


def _changed(name: str, pointer: Pointer, values: Sequence[Any], index: Any, mask: Any) -> Tile:
    kind, program = checked(pointer, "word").dtype, current()
    if name in _BITWISE and kind.is_floating_point:
        raise TypeError(f"atomic_{name} of {kind!r}: its operands are whole numbers or bools")
    for v in values:
        if isinstance(v, Tile) and v.dtype is not kind:
            raise TypeError(f"a tile of {v.dtype!r} cannot change {kind!r}: convert it first, with to()")
    if isinstance(index, Tile) and (index.dtype.is_floating_point or index.dtype.name == "bool"):
        raise TypeError(f"an index of {index.dtype!r}: it must be of whole numbers")
    program.call(go.PrimOrder, "pipe_barrier")  # then tiles are what they will be
    shape = _shape_of(*values, index, mask)
    given = [np.broadcast_to(np.asarray(_now(v)).astype(kind.numpy), shape).ravel() for v in values]
    places = np.arange(int(np.prod(shape))) if index is None else np.broadcast_to(_now(index), shape).ravel()
    kept = np.broadcast_to(True if mask is None else np.asarray(_now(mask), bool), shape).ravel()
    addresses = pointer.address + places[kept].astype(np.int64) * kind.itemsize
    old = np.zeros(len(kept), kind.numpy)
    if kept.any():
        change = _Change(name, program, addresses, [v[kept] for v in given], kind.numpy, kind.arithmetic)
        old[kept] = change.here() if change.is_own() else change.afar()
    out = new_tile(kind, shape)
    return computed(f"atomic_{name}", out, (old.reshape(shape),), lambda v: v)


def _now(x: Any) -> Any:
    return x._array.copy() if isinstance(x, Tile) else x


def _shape_of(*operands: Any) -> tuple[int, ...]:
    shapes = [x.shape if isinstance(x, Tile) else np.shape(x) for x in operands if x is not None]
    try:
        return np.broadcast_shapes(*shapes)
    except ValueError:
        text = " and ".join(str(list(shape)) for shape in shapes)
        raise ValueError(f"tiles, an index and a mask of shapes {text} do not go together") from None


class _Change:
    """A change of elements at addresses."""

    def __init__(
        self, name: str, program: Program, addresses: np.ndarray, values: list[np.ndarray], kind: np.dtype, wide: Any
    ) -> None:
        self._name, self._program, self._addresses, self._values = name, program, addresses, values
        self._kind, self._wide = np.dtype(kind), wide

    def is_own(self) -> bool:
        """Says whether all is in the rank's own memory."""
        return bool((self._addresses >> _RANK_SHIFT == self._program.launch.rank + 1).all())

    def here(self) -> np.ndarray:
        """Changes the rank's own memory after its latency, and returns what was there."""
        program, size = self._program, self._kind.itemsize
        what = f"atomic_{self._name}"
        first, memory = self._memory(what)
        program.call(go.PrimPass, go.PrimRates(program.machine.handle)[_LATENCY])
        at = (self._addresses - first) // size
        with np.errstate(all="ignore"):
            old = self._one_by_one(memory, at) if len(np.unique(at)) < len(at) else self._at_once(memory, at)
        if program.checks:
            program.found(self._addresses, old, self._name == "exchange")
        words = [n for address in self._addresses.tolist() for n in (address, size)]
        program.call(go.PrimTouch, what, words, _ATOMIC, False)
        return old

    def _memory(self, what: str) -> tuple[int, np.ndarray]:
        """The elements of the window that all addresses are in, from which address on."""
        lo, size = int(self._addresses.min()), self._kind.itemsize
        hi = int(self._addresses.max()) + size
        start, place, nbytes = go.PrimInProcess(self._program.machine.handle, lo)
        if not start <= lo < hi <= start + nbytes:
            raise ValueError(f"{what}: an element is beyond its window, which has {nbytes} bytes")
        if (self._addresses - start).min() % size:
            raise ValueError(f"{what}: misaligned address: {lo:#x} is no multiple of {size} bytes")
        memory = np.ctypeslib.as_array((ctypes.c_uint8 * (nbytes // size * size)).from_address(place))
        return start, memory.view(self._kind)

    def _operate(self, old: Any, values: Sequence[Any]) -> Any:
        if self._name in ("exchange", "cas"):  # nothing is calculated
            return _OPERATIONS[self._name](old, *values)
        wide = [np.asarray(v).astype(self._wide, copy=False) for v in (old, *values)]
        return np.asarray(_OPERATIONS[self._name](*wide)).astype(self._kind)

    def _at_once(self, memory: np.ndarray, at: np.ndarray) -> np.ndarray:
        old = memory[at]
        memory[at] = self._operate(old, self._values)
        return old

    def _one_by_one(self, memory: np.ndarray, at: np.ndarray) -> np.ndarray:
        old = np.empty(len(at), self._kind)
        for i, place in enumerate(at.tolist()):
            old[i] = memory[place]
            memory[place] = self._operate(old[i], [v[i] for v in self._values])
        return old

    def afar(self) -> np.ndarray:
        """Changes words of any ranks, one after another, and returns what was there."""
        names = {"add": "add", "exchange": "exchange", "cas": "compare_swap"}
        if self._name not in names or self._kind.name not in _WORDS:
            raise NotImplementedError(
                f"atomic_{self._name} of {self._kind.name} in another rank's memory: there are add, exchange and cas "
                "of int32 and int64"
            )
        old = []
        for i, address in enumerate(self._addresses.tolist()):
            wanted = int(self._values[0][i]) if self._name == "cas" else 0
            args = (names[self._name], address, self._kind.itemsize, wanted, int(self._values[-1][i]), ATOMIC)
            old.append(self._program.ask(go.PrimAtomic, *args))
        return np.array(old, self._kind)
