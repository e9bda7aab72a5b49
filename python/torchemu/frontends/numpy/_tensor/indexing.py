"""Square brackets: t[index] and t[index] = value."""

# ruff: noqa: A002 (names are PyTorch's)

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from torchemu import dtypes
from torchemu.frontends.numpy._shape import selected
from torchemu.frontends.numpy._tensor.conversion import check_number, converted
from torchemu.frontends.numpy._tensor.copying import copy_, fill_
from torchemu.frontends.numpy._tensor.core import Tensor, method, waits
from torchemu.frontends.numpy._tensor.dispatch import (
    Op,
    _op,
    _op_in_place,
    _op_view,
    gathered,
    no_flops,
    scattered,
)
from torchemu.frontends.numpy._tensor.parts import SELECT, SLICE
from torchemu.frontends.numpy._tensor.views import broadcast_shapes

__all__ = [
    "masked_fill",
    "masked_select",
    "nonzero",
]


Array = np.ndarray
_BASIC = (int, slice, type(None), type(Ellipsis), np.integer)


def _index(x: Array, *keys: Any) -> Array:
    return x[keys]


def _index_put(x: Array, value: Array, *keys: Any) -> None:
    x[keys] = converted(value, x.dtype)


def _flop_per_value(outputs: Any, inputs: Any) -> int:
    return inputs[0].numel()


def _index_add(x: Array, value: Array, *keys: Any) -> None:
    np.add.at(x, keys, converted(value, x.dtype))


INDEX = Op("index", _index, no_flops, traffic=gathered)
INDEX_PUT = Op("index_put_", _index_put, no_flops, traffic=scattered)
INDEX_PUT_ADD = Op("index_put_", _index_add, _flop_per_value, traffic=scattered)


def getitem(self: Tensor, index: Any) -> Tensor:
    """A view for integers, slices, None and ...; a copy for lists, tensors and masks.

    Raises:
        IndexError: an index is out of bounds or of a wrong type, or there are too many.
        ValueError: a slice's step is not positive.
    """
    if type(index) is int and self._shape:
        return _element(self, index)
    if isinstance(index, Tensor) and index.dtype is dtypes.int64 and index._shape and self._shape:
        _known((index,))
        return _translated(lambda: _op(INDEX, (self, index)))
    keys = _keys(index)
    plain = _plain(keys)
    if plain is not None:
        return _part(self, plain)
    part, chosen = _narrowed(self, _prepared(self, keys))
    _known(chosen)
    return _translated(lambda: _op(INDEX, (part, *chosen)))


def _known(indices: Iterable[Any]) -> None:
    """Settles indices, whose elements decide whether they are in bounds, and masks, which decide on shapes."""
    for index in indices:
        if isinstance(index, Tensor) and index._storage.unsettled:
            index._storage.settle(index)


def _keys(index: Any) -> tuple[Any, ...]:
    """One for each dimension; a list of what are not just numbers counts as a tuple."""
    if type(index) is tuple:
        return index
    if type(index) is list and any(isinstance(k, (Tensor, list, tuple, slice)) or k is None or k is ... for k in index):
        return tuple(index)
    return (index,)


def _element(t: Tensor, i: int) -> Tensor:
    n, steps = t._shape[0], t._steps()
    if not -n <= i < n:
        raise IndexError(f"index {i} is out of bounds for dimension 0 with size {n}")
    return _op_view(SELECT, t, t._shape[1:], steps[1:], t._offset + i % n * steps[0], 0, i % n)


def _plain(keys: tuple[Any, ...]) -> tuple[Any, ...] | None:
    """The keys, if none of them picks single elements: integers of tensors as Python's."""
    plain = []
    for k in keys:
        if isinstance(k, Tensor) and not k._shape and k.dtype.category is dtypes.Category.INTEGER:
            k = int(k)
        elif isinstance(k, bool) or not isinstance(k, _BASIC):
            return None
        plain.append(k)
    return tuple(plain)


def _part(t: Tensor, keys: tuple[Any, ...]) -> Tensor:
    shape, steps, offset = selected(keys, t._shape, t._steps())
    return _op_view(SLICE, t, shape, steps, t._offset + offset, keys)


def _prepared(t: Tensor, keys: tuple[Any, ...]) -> list[Any]:
    """The keys as NumPy has them, tensors still as tensors."""
    prepared: list[Any] = []
    for k in keys:
        if isinstance(k, Tensor):
            prepared.append(_checked(k))
        elif isinstance(k, list | tuple | range | np.ndarray):
            prepared.append(_array(k))
        elif isinstance(k, (*_BASIC, np.bool_)):
            prepared.append(k)
        else:
            raise IndexError(
                "only integers, slices (`:`), ellipsis (`...`), None and long or byte Variables are valid indices "
                f"(got {type(k).__name__})"
            )
    _check_masks(t, prepared)
    return prepared


def _narrowed(t: Tensor, keys: list[Any]) -> tuple[Tensor, list[Any]]:
    """The part that the integers and slices among the keys select, and the rest of the keys, for its dimensions.

    NumPy would count the integers among the lists and tensors, and then order the dimensions otherwise.
    """
    if any(isinstance(k, bool | np.bool_) for k in keys):
        return t, keys
    plain: list[Any] = []
    rest: list[Any] = []
    for k in keys:
        if isinstance(k, Tensor | Array):
            plain += [slice(None)] * (k.ndim if _is_mask(k) else 1)
            rest.append(k)
        else:
            plain.append(k)
            if not isinstance(k, int | np.integer):
                rest.append(k if k is Ellipsis else slice(None))
    whole = all(k is Ellipsis or (isinstance(k, slice) and k == slice(None)) for k in plain)
    return t if whole else _part(t, tuple(plain)), rest


def _checked(k: Tensor) -> Tensor:
    """An index tensor. How much a mask selects the host has to wait for."""
    if k.dtype.is_inexact:
        raise IndexError(f"tensors used as indices must be long, int, byte or bool tensors, not {k.dtype!r}")
    if k.dtype in (dtypes.bool_, dtypes.uint8):
        k.wait()
        return k.bool()
    return k


def _array(k: Any) -> Array:
    if isinstance(k, list | tuple) and any(isinstance(x, Tensor) for x in k):
        k = [x.tolist() if isinstance(x, Tensor) else x for x in k]
    array = np.asarray(k)
    if array.size == 0:
        array = array.astype(np.int64)
    if array.dtype.kind not in "iub":
        raise IndexError(f"an index list must hold integers or bools, not {array.dtype}")
    return array


def _check_masks(t: Tensor, keys: list[Any]) -> None:
    """Raises:
    IndexError: a mask has not the shape of the dimensions that it is for.
    """
    consumed = [getattr(k, "ndim", 1) if _is_mask(k) else 1 for k in keys if k is not None and not isinstance(k, bool)]
    if any(k is Ellipsis for k in keys):
        return
    if sum(consumed) > len(t._shape):
        raise IndexError(f"too many indices for tensor of dimension {len(t._shape)}")
    at = 0
    for k in (k for k in keys if k is not None and not isinstance(k, bool)):
        if _is_mask(k):
            shape = tuple(k.shape)
            for i, (n, m) in enumerate(zip(shape, t._shape[at:], strict=False)):
                if n != m:
                    raise IndexError(
                        f"The shape of the mask {list(shape)} at index {i} does not match the shape of the indexed "
                        f"tensor {list(t._shape)} at index {at + i}"
                    )
            at += len(shape)
        else:
            at += 1


def _is_mask(k: Any) -> bool:
    return (isinstance(k, Tensor) and k.dtype is dtypes.bool_) or (isinstance(k, Array) and k.dtype == bool)


def _translated(call: Callable[[], Any]) -> Any:
    """The call's result, with PyTorch's words for what is wrong with an index."""
    try:
        return call()
    except IndexError as error:
        text = str(error).replace("for axis", "for dimension").replace("for array:", "for tensor:")
        raise IndexError(text) from None


def setitem(self: Tensor, index: Any, value: Any) -> None:
    """copy_ to what getitem selects; into elements that are selected twice one of the values goes.

    Raises:
        as getitem; RuntimeError also where the value's shape does not fit.
    """
    if type(index) is int and self._shape:
        target = _element(self, index)
    else:
        keys = _keys(index)
        plain = _plain(keys)
        if plain is None:
            put(self, keys, value, INDEX_PUT)
            return
        target = _part(self, plain)
    if isinstance(value, Tensor):
        copy_(target, _without_leading_ones(value, len(target._shape)))
    elif isinstance(value, dtypes.NUMBERS):
        fill_(target, value)
    else:
        copy_(target, _as_value(self, value))


def _as_value(t: Tensor, value: Any) -> Tensor:
    check_number(value, t.dtype)
    if isinstance(value, (*dtypes.NUMBERS, list, tuple, Array)):
        return t.new_tensor(value)
    raise TypeError(f"can't assign a {type(value).__name__} to a {t.type()}")


def _without_leading_ones(value: Tensor, ndim: int) -> Tensor:
    while len(value._shape) > ndim and value._shape[0] == 1:
        value = _element(value, 0)
    return value


def put(self: Tensor, keys: tuple[Any, ...], value: Any, op: Op) -> None:
    """Stores the value, or adds it, where the keys select."""
    part, prepared = _narrowed(self, _prepared(self, keys))
    _known(prepared)
    source = value if isinstance(value, Tensor) else _as_value(self, value)
    source = _without_leading_ones(source, len(source._shape) if source.numel() != 1 else 0)
    try:
        _translated(lambda: _op_in_place(op, part, (source, *prepared)))
    except ValueError as error:
        raise RuntimeError(
            f"shape mismatch: value tensor of shape {list(source._shape)} cannot be broadcast to indexing result: "
            f"{error}"
        ) from None


# -- masks


def _masked_fill(x: Array, mask: Array, value: Any) -> None:
    np.copyto(x, converted(np.asarray(value), x.dtype), where=mask)


def _masked_select(x: Array, mask: Array) -> Array:
    x, mask = np.broadcast_arrays(x, mask)
    return x[mask]


MASKED_FILL = Op("masked_fill_", _masked_fill, no_flops)
MASKED_SELECT = Op("masked_select", _masked_select, no_flops)


def _check_mask(name: str, mask: Any) -> None:
    if not isinstance(mask, Tensor) or mask.dtype is not dtypes.bool_:
        kind = mask.dtype.title if isinstance(mask, Tensor) else type(mask).__name__
        raise RuntimeError(f"{name} only supports boolean masks, but got mask with dtype {kind}")


def _check_single(name: str, value: Any, target: Tensor) -> None:
    check_number(value, target.dtype)
    if isinstance(value, Tensor) and value._shape:
        raise RuntimeError(
            f"{name} only supports a 0-dimensional value tensor, but got tensor with {len(value._shape)} dimension(s)."
        )


@method
def masked_fill_(self: Tensor, mask: Tensor, value: Any) -> Tensor:
    """Stores a value, or a tensor without dimensions, where the mask, which broadcasts, is true.

    Raises:
        RuntimeError: the mask is not of bool, or its shape does not fit.
    """
    _check_mask("masked_fill_", mask)
    _check_single("masked_fill_", value, self)
    _op_in_place(MASKED_FILL, self, (mask.expand(self._shape), value))
    return self


def _masked_filled(x: Array, mask: Array, value: Any) -> Array:
    return np.where(mask, converted(np.asarray(value), x.dtype), x)


MASKED_FILLED = Op("masked_fill", _masked_filled, no_flops)


@method
def masked_fill(self: Tensor, mask: Tensor, value: Any) -> Tensor:
    """masked_fill_ into a copy; the tensor broadcasts too."""
    _check_mask("masked_fill", mask)
    _check_single("masked_fill", value, self)
    if self._shape != mask._shape:
        broadcast_shapes(self._shape, mask._shape)
    return _op(MASKED_FILLED, (self, mask, value))


@method
@waits
def masked_select(input: Tensor, mask: Tensor) -> Tensor:
    """The elements where the mask is true, in one dimension.

    Raises:
        RuntimeError: the mask is not of bool.
    """
    if mask.dtype is not dtypes.bool_:
        raise RuntimeError(f"masked_select: expected BoolTensor for mask, not {mask.dtype!r}")
    broadcast_shapes(input._shape, mask._shape)
    return _op(MASKED_SELECT, (input, mask))


def _nonzero(x: Array) -> Array:
    return np.argwhere(x.astype(np.float32) if x.dtype.kind == "V" else x)


NONZERO = Op("nonzero", _nonzero, no_flops)


@method
@waits
def nonzero(input: Tensor, *, as_tuple: bool = False) -> Any:
    """The indices of elements that are not zero, as rows, or with as_tuple as an index for each dimension."""
    rows = _op(NONZERO, (input,), kind=dtypes.int64)
    if not as_tuple:
        return rows
    if not input._shape:
        return nonzero(input.reshape(1), as_tuple=True)
    return tuple([c.contiguous() for c in rows.unbind(1)])
