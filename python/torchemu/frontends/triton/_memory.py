"""Moves between memory and values: loads, stores, atomic operations, block pointers and descriptors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from torchemu.bridge.binding import go
from torchemu.frontends.triton import _access
from torchemu.frontends.triton import _types as t
from torchemu.frontends.triton._conversions import cast
from torchemu.frontends.triton._looked import looked, note_update
from torchemu.frontends.triton._program import Block, Elements, current, rank_of
from torchemu.frontends.triton._values import Loaded, Run, plain, tensor, truth, value_of

_POISON = 0xCD


def _pointer(x: Any, what: str) -> tensor:
    x = plain(x)
    if not isinstance(x, tensor) or not x.dtype.is_ptr():
        kind = x.type if isinstance(x, tensor) else type(x).__name__
        raise TypeError(f"Unsupported ptr type {kind} in `{what}`: it has to be a pointer, or a block of pointers")
    return x


def _chosen(program: Block, p: tensor, mask: Any, what: str) -> tuple[np.ndarray, np.ndarray | None]:
    """The addresses that are accessed, one after another, and which elements they are of; None for all."""
    if mask is not None:
        mask = truth(value_of(mask))
        if mask.shape and not p.shape:
            raise ValueError(f"Mask argument of `{what}` cannot be block type if pointer argument is not a block")
    if not p.shape:
        return _chosen_scalars(program, p, mask)
    flat = np.ascontiguousarray(p.data).ravel()
    if mask is None:
        return flat, None
    try:
        keep = np.broadcast_to(mask.data, p.shape)
    except ValueError:
        raise ValueError(
            f"the mask of `{what}` is of shape {list(mask.shape)}, its pointers of {list(p.shape)}"
        ) from None
    if keep.all():
        return flat, None
    return np.ascontiguousarray(p.data[keep]).ravel(), keep


def _is_whole(p: Run, mask: Any) -> bool:
    """Says whether a mask leaves all of a run of pointers."""
    return mask is None or (type(mask) is Run and mask.dtype is t.int1 and mask.first == mask.n == p.n)


def _chosen_scalars(program: Block, p: tensor, mask: Any) -> tuple[np.ndarray, np.ndarray | None]:
    if not p.lanes and (mask is None or not mask.lanes):
        flat = np.array([p.data], np.int64)
        return (flat, None) if mask is None or mask.data else (flat[:0], np.zeros(1, bool))
    active = program.active()
    if mask is not None:
        active = active & mask.data
    flat = np.broadcast_to(p.data, active.shape)
    return (flat[active].astype(np.int64), active)


def load(
    pointer: Any,
    mask: Any = None,
    other: Any = None,
    boundary_check: Sequence[int] = (),
    padding_option: str = "",
    cache_modifier: str = "",
    eviction_policy: str = "",
    volatile: bool = False,
) -> tensor:
    """The elements at places in memory. What is masked off is not accessed: it is other, or else undefined.

    Raises:
        TypeError: there is no pointer.
        ValueError: an address is in no window, or misaligned; the mask's shape is not that of the pointers.
    """
    if isinstance(pointer, BlockPointer):
        return pointer.load(boundary_check, padding_option)
    p = _pointer(pointer, "tl.load")
    if not plain(volatile):
        return loaded(p, mask, other, "tl.load")
    found, program = loaded(p, mask, other, "tl.load", _access.FRESH), current()
    return looked(program, found, np.ravel(p.data)) if program.checks else found


def loaded(p: tensor, mask: Any, other: Any, what: str, look: int = _access.PLAIN) -> tensor:
    """Loads elements; see _access.read for the looks."""
    program = current()
    kind = p.dtype.element_ty
    if type(p) is Run and look == _access.PLAIN and _is_whole(p, mask):
        ahead = _access.read_run(program, p.first, p.n, kind.numpy, what)
        if ahead is not None:
            return Loaded(program, ahead, kind)
    flat, keep = _chosen(program, p, mask, what)
    lanes = p.lanes or (keep is not None and not p.shape and len(keep) > 1)
    shape = program.all.shape if lanes else p.shape
    if keep is None:
        data = _access.read(program, flat, kind.numpy, what, look, bool(p.shape)).reshape(shape)
        return tensor(data if shape else data[()], kind, lanes)
    data = _filled(program, shape, kind, other)
    if flat.size:
        data[keep if shape else ...] = _access.read(program, flat, kind.numpy, what, look, bool(p.shape))
    return tensor(data if shape else data[()], kind, lanes)


def _filled(program: Block, shape: tuple[int, ...], kind: t.dtype, other: Any) -> np.ndarray:
    if other is not None:
        value = cast(other, kind).data
        return np.array(np.broadcast_to(value, shape))
    if program.checks and not kind.is_bool():
        return np.full((*shape, kind.itemsize), _POISON, np.uint8).view(kind.numpy).reshape(shape)
    return np.zeros(shape, kind.numpy)


def store(
    pointer: Any,
    value: Any,
    mask: Any = None,
    boundary_check: Sequence[int] = (),
    cache_modifier: str = "",
    eviction_policy: str = "",
) -> None:
    """Writes elements to places in memory, but for those that are masked off.

    Raises:
        TypeError, ValueError: as load; the value is a block and the pointer is not.
    """
    if isinstance(pointer, BlockPointer):
        pointer.store(value, boundary_check)
        return
    stored(_pointer(pointer, "tl.store"), value, mask, "tl.store")


def stored(p: tensor, value: Any, mask: Any, what: str) -> None:
    """Stores elements; a scalar is thread 0's."""
    program = current()
    kind = p.dtype.element_ty
    v = cast(value, kind)
    if v.shape and not p.shape:
        raise ValueError("Value argument cannot be block type if pointer argument is not a block")
    packed = _access.are_packed(program, kind.numpy, p.data.size if p.shape else 1)
    if type(p) is Run and v.shape == p.shape and _is_whole(p, mask) and not packed:
        _access.write_run(
            program, p.first, v.held if type(v) is Loaded else Elements(np.ascontiguousarray(v.data)), what
        )
        return
    flat, keep = _chosen(program, p, mask, what)
    if not p.shape:
        _store_scalar(program, flat, keep, v, what)
        return
    try:
        values = np.broadcast_to(v.data, p.shape)
    except ValueError:
        raise ValueError(f"{what} of a block of shape {list(v.shape)} to pointers of shape {list(p.shape)}") from None
    values = np.ascontiguousarray(values).ravel() if keep is None else values[keep]
    if flat.size:
        _access.write(program, flat, values, what)


def _store_scalar(program: Block, flat: np.ndarray, keep: np.ndarray | None, v: tensor, what: str) -> None:
    if not program.one() and (keep is None or len(keep) == 1):
        return
    if keep is not None and len(keep) > 1:
        if not keep[0]:
            return
        flat = flat[:1]
    if flat.size:
        data = v.data[:1] if v.lanes else np.array([v.data])
        _access.write(program, flat, data.astype(v.dtype.numpy), what, threads=False)


# -- atomic operations


def _changed(name: str, kind: t.dtype) -> Callable[[Any, Any], Any]:
    make = kind.numpy.type
    functions: dict[str, Callable[[Any, Any], Any]] = {
        "add": lambda old, new: make(old + new),
        "max": lambda old, new: max(old, new),
        "min": lambda old, new: min(old, new),
        "and": lambda old, new: old & new,
        "or": lambda old, new: old | new,
        "xor": lambda old, new: old ^ new,
        "xchg": lambda old, new: new,
    }
    return functions[name]


_SCOPES = (None, "gpu", "cta", "sys")


def order_of(sem: Any, scope: Any) -> int:
    """Returns how an atomic operation of such semantics and such a scope uses memory.

    Raises:
        ValueError: there are none.
    """
    if plain(sem) not in _access.ORDERS:
        raise ValueError(f"Memory semantic {sem} not supported")
    if plain(scope) not in _SCOPES:
        raise ValueError(f"Memory scope {scope} not supported")
    return _access.ORDERS[plain(sem)]


def atomic(name: str, pointer: Any, values: Sequence[Any], mask: Any, sem: Any, scope: Any) -> tensor:
    """Changes elements and returns the old ones; a scalar is changed once."""
    what = f"tl.atomic_{name}"
    program, p = current(), _pointer(pointer, what)
    use = order_of(sem, scope)
    kind = p.dtype.element_ty
    given = [cast(v, kind) for v in values]
    if not p.shape and not p.lanes and any(v.shape for v in given):
        raise ValueError(f"{what}: values are a block, and the pointer is not")
    flat, keep = _chosen(program, p, mask, what)
    _access.narrowed(program, flat.tolist(), kind.itemsize, what, plain(scope))
    shape = program.all.shape if p.lanes else p.shape
    each = [
        np.broadcast_to(v.data, shape) if keep is None or not shape else np.broadcast_to(v.data, shape)[keep]
        for v in given
    ]
    out = np.zeros(shape, kind.numpy)
    drops, program.drops = program.drops, False
    if name == "xchg":
        note_update(program, values[0], flat, kind.itemsize, not drops)
    for address in flat.tolist() if program.looked else ():
        program.looked.pop(address, None)  # what an atomic operation finds counts from now on
    if flat.size and (p.shape or p.lanes or program.active().any()):
        with program.hearing(), program.heedless(drops):
            old = changed_words(program, name, flat, [np.ravel(v) for v in each], kind, bool(p.shape), use)
        out[keep if keep is not None and shape else ...] = old.reshape(shape if keep is None else -1 if shape else ())
    return tensor(out if shape else out[()], kind, p.lanes)


def changed_words(
    program: Block, name: str, flat: np.ndarray, values: list[np.ndarray], kind: t.dtype, threads: bool, use: int
) -> np.ndarray:
    """Changes words of any rank atomically, one after another, and returns the old ones.

    Args:
        name: of the operation, such as add, xchg or cas.
        flat: the addresses.
        values: of each operand, one for each word.
        threads: all threads do it.
        use: one of _access.ORDERS.
    """
    what = f"tl.atomic_{name}"
    if any(rank_of(a) != program.launch.rank for a in flat.tolist()):
        if use in (_access.ATOMIC, _access.RELEASES):
            program.fence()
        with program.sharing(threads):
            found = [_far(program, name, a, [v[i] for v in values], kind, use) for i, a in enumerate(flat.tolist())]
        return np.array(found, kind.numpy)
    change = _changed(name, kind) if name != "cas" else None

    def operate(i: int, old: Any) -> Any:
        if change is not None:
            return change(old, values[0][i])
        return values[1][i] if old == values[0][i] else old

    return _access.update(program, flat, operate, kind.numpy, what, threads, use)


_FAR = {"add": "add", "xchg": "exchange", "cas": "compare_swap"}


def _far(program: Block, name: str, address: int, values: list[Any], kind: t.dtype, use: int) -> Any:
    """An atomic operation on a word of another rank."""
    what = f"tl.atomic_{name}"
    _access.reachable(program, rank_of(address), what)
    if name not in _FAR or kind.primitive_bitwidth < 32:
        raise NotImplementedError(f"{what} of {kind} in another rank's memory: there are add, xchg and cas of words")
    program.pay()
    if not kind.is_integer:
        return _far_float(program, name, address, values, kind, use)
    wanted = int(values[0]) if name == "cas" else 0
    numbers = _signed(wanted), _signed(int(values[-1]))
    old = program.ask(go.PrimAtomic, _FAR[name], address, kind.itemsize, *numbers, use)
    result = np.array(old, np.int64).astype(kind.numpy)[()]
    if name == "cas" and result != values[0] and program.loops:
        program.looks.append((address, result.tobytes()))
    else:
        program.effects += 1
    return result


def _far_float(program: Block, name: str, address: int, values: list[Any], kind: t.dtype, use: int) -> Any:
    """Acts as _far, for a word that is a float: by its bits."""
    bits = np.dtype(f"i{kind.itemsize}")
    numbers = [int(np.asarray(value, kind.numpy).view(bits)) for value in values]
    wanted = numbers[0] if name == "cas" else 0
    called = "add_float" if name == "add" else _FAR[name]
    old = program.ask(go.PrimAtomic, called, address, kind.itemsize, wanted, numbers[-1], use)
    program.effects += 1
    return np.array(old, np.int64).astype(bits).view(kind.numpy)[()]


def _signed(value: int) -> int:
    return (value + (1 << 63)) % (1 << 64) - (1 << 63)


# -- block pointers and descriptors


class BlockPointer:
    """A block of a tensor in memory, which can be moved: ``tl.make_block_ptr``.

    Args:
        base: the tensor's first element.
        shape, strides: of the tensor.
        offsets: of the block's first element.
        block_shape: of the block.
        order: of the tensor's dimensions in memory; not needed here.
    """

    def __init__(self, base: Any, shape: Any, strides: Any, offsets: Any, block_shape: Any, order: Any = None) -> None:
        self.base = _pointer(base, "tl.make_block_ptr")
        self.shape, self.strides = _numbers(shape), _numbers(strides)
        self.offsets, self.block_shape = _numbers(offsets), _numbers(block_shape)
        if not len(self.shape) == len(self.strides) == len(self.offsets) == len(self.block_shape):
            raise ValueError("Expected shape/strides/offsets/block_shape to have the same length")

    @property
    def dtype(self) -> t.dtype:
        """The type of its pointers."""
        return self.base.dtype

    def advance(self, offsets: Any) -> BlockPointer:
        """The block that lies so many elements further."""
        moved = [a + b for a, b in zip(self.offsets, _numbers(offsets), strict=True)]
        return BlockPointer(self.base, self.shape, self.strides, moved, self.block_shape)

    def places(self, checked: Sequence[int] | None) -> tuple[tensor, tensor | None]:
        """Returns the block's pointers, and which of its elements are inside the tensor in some dimensions."""
        return _places(self.base, self.shape, self.strides, self.offsets, self.block_shape, checked)

    def load(self, boundary_check: Any = (), padding_option: Any = "") -> tensor:
        """The block's elements."""
        pointers, mask = self.places(_numbers(boundary_check))
        other = None if mask is None else (float("nan") if plain(padding_option) == "nan" else 0)
        return loaded(pointers, mask, other, "tl.load")

    def store(self, value: Any, boundary_check: Any = ()) -> None:
        """Writes the block's elements."""
        pointers, mask = self.places(_numbers(boundary_check))
        stored(pointers, value, mask, "tl.store")


def _numbers(values: Any) -> list[int]:
    values = plain(values)
    if isinstance(values, int | tensor):
        values = [values]
    return [int(plain(v)) for v in values]


def _places(
    base: tensor,
    shape: list[int],
    strides: list[int],
    offsets: list[int],
    block: list[int],
    checked: Sequence[int] | None,
) -> tuple[tensor, tensor | None]:
    size = base.dtype.element_ty.itemsize
    at: Any = np.int64(base.data)
    inside: Any = None
    for d, n in enumerate(block):
        index = np.arange(n, dtype=np.int64) + offsets[d]
        spread = index.reshape([-1 if e == d else 1 for e in range(len(block))])
        at = at + spread * (strides[d] * size)
        if checked is None or d in checked:
            good = (spread >= 0) & (spread < shape[d])
            inside = good if inside is None else inside & good
    pointers = tensor(np.broadcast_to(at, block), base.dtype)
    if inside is None or inside.all():
        return pointers, None
    return pointers, tensor(np.broadcast_to(inside, block), t.int1)


class Descriptor:
    """A tensor in memory of which blocks are loaded and stored: ``tl.make_tensor_descriptor``. What of a block is
    outside of the tensor is zero when it is loaded, and is not stored.

    Args:
        base: the first element.
        shape, strides: of the tensor.
        block_shape: of the blocks.
        padding_option: "zero" or "nan".

    Raises:
        ValueError: the last stride is not 1; there are not as many of each; a block's row is shorter than 16 bytes.
    """

    def __init__(self, base: Any, shape: Any, strides: Any, block_shape: Any, padding_option: Any = "zero") -> None:
        self.base = _pointer(base, "tl.make_tensor_descriptor")
        self.shape, self.strides, self.block_shape = (_numbers(v) for v in (shape, strides, block_shape))
        self._padding = plain(padding_option)
        if not 1 <= len(self.shape) <= 5:
            raise ValueError(f"Expected 1 <= ndim <= 5 but got {len(self.shape)} dimensions")
        if len(self.strides) != len(self.shape) or len(self.block_shape) != len(self.shape):
            raise ValueError(
                f"Expected {len(self.shape)} strides and block sizes but got {self.strides}, {self.block_shape}"
            )
        if self.strides[-1] != 1:
            raise ValueError(f"Tensor descriptor last dim must be 1 but got {self.strides[-1]}")
        row = self.block_shape[-1] * self.dtype.itemsize
        if row < 16:
            raise ValueError(f"Descriptor block shape must have at least 16 bytes in the last dimension, but got {row}")

    @property
    def dtype(self) -> t.dtype:
        """The type of the tensor's elements."""
        return self.base.dtype.element_ty

    @property
    def type(self) -> Any:
        """The type of a block."""
        return t.block_type(self.dtype, self.block_shape)

    def load(self, offsets: Any) -> tensor:
        """The elements of the block that begins at these offsets."""
        pointers, mask = _places(self.base, self.shape, self.strides, _numbers(offsets), self.block_shape, None)
        return loaded(pointers, mask, float("nan") if self._padding == "nan" else 0, "descriptor.load")

    def store(self, offsets: Any, value: Any) -> None:
        """Writes the block that begins at these offsets."""
        pointers, mask = _places(self.base, self.shape, self.strides, _numbers(offsets), self.block_shape, None)
        stored(pointers, value, mask, "descriptor.store")

    def combine(self, name: str, offsets: Any, value: Any) -> None:
        """Combines the block at these offsets with a value, element by element."""
        pointers, mask = _places(self.base, self.shape, self.strides, _numbers(offsets), self.block_shape, None)
        atomic(name, pointers, [value], mask, None, None)

    def __getattr__(self, name: str) -> Any:
        operation = name.removeprefix("atomic_")
        if operation not in ("add", "min", "max", "and", "or", "xor") or operation == name:
            raise AttributeError(f"a tensor descriptor has no attribute {name!r}")
        return lambda offsets, value: self.combine(operation, offsets, value)

    def gather(self, rows: Any, column: Any) -> tensor:
        """The parts, of the block's width, of some rows from a column on."""
        pointers, mask = self._rows(rows, column)
        return loaded(pointers, mask, 0, "descriptor.gather")

    def scatter(self, value: Any, rows: Any, column: Any) -> None:
        """Writes the parts of some rows from a column on."""
        pointers, mask = self._rows(rows, column)
        stored(pointers, value, mask, "descriptor.scatter")

    def _rows(self, rows: Any, column: Any) -> tuple[tensor, tensor]:
        across = np.arange(self.block_shape[-1], dtype=np.int64) + int(column)
        down = value_of(rows).data.astype(np.int64)[:, None]
        at = np.int64(self.base.data) + (down * self.strides[0] + across) * self.dtype.itemsize
        inside = (down >= 0) & (down < self.shape[0]) & (across >= 0) & (across < self.shape[1])
        return tensor(at, self.base.dtype), tensor(inside, t.int1)
