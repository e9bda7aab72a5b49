"""Reductions, scans and products of blocks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from torchemu.frontends.triton import _arithmetic
from torchemu.frontends.triton import _types as t
from torchemu.frontends.triton._clock import present
from torchemu.frontends.triton._conversions import cast
from torchemu.frontends.triton._program import running
from torchemu.frontends.triton._values import made, plain, tensor, value_of


def _axis(x: tensor, axis: Any) -> int | None:
    axis = plain(axis)
    if axis is None:
        return None
    n = len(x.shape)
    if not -n <= int(axis) < n:
        raise ValueError(f"invalid axis {axis}. Expected {-n} <= axis < {n}")
    return int(axis) % n


def _block(x: Any, name: str) -> tensor:
    v = value_of(x)
    if not v.shape:
        raise ValueError(f"tl.{name} of a scalar: it takes a block")
    return v


def _shaped(data: Any, x: tensor, axis: int | None, keep_dims: Any) -> Any:
    if not plain(keep_dims):
        return data
    return np.reshape(data, [1] * len(x.shape)) if axis is None else np.expand_dims(data, axis)


def _widened(kind: t.dtype) -> t.dtype:
    """The type of a sum: integers of fewer than 32 bits are added as such of 32."""
    if kind.is_integer and kind.primitive_bitwidth < 32:
        return t.int32 if kind.signed else t.uint32
    return kind


def _extreme_type(kind: t.dtype) -> t.dtype:
    """The type of an extreme: what is shorter than 32 bits is compared as float32 or int32."""
    if kind.primitive_bitwidth >= 32:
        return kind
    return t.float32 if kind.is_float else t.int32


def _halved(data: np.ndarray, function: Callable[[Any, Any], Any], axis: int) -> Any:
    """A reduction by halves, as threads do it: every step rounds."""
    data = np.moveaxis(data, axis, 0)
    while len(data) > 1:
        half = len(data) // 2
        data = function(data[:half], data[half : 2 * half])
    return data[0]


def _reduced(x: tensor, function: Any, axis: int | None, keep_dims: Any) -> tensor:
    flat, along = (x.data.ravel(), 0) if axis is None else (x.data, axis)
    present().made += x.data.nbytes
    data = _shaped(_halved(flat, function, along), x, axis, keep_dims)
    return tensor(np.asarray(data).astype(x.dtype.numpy)[()], x.dtype)


def sum(input: Any, axis: Any = None, keep_dims: Any = False, dtype: Any = None) -> tensor:  # noqa: A001, A002
    """The sum of all elements, or along an axis. Integers of fewer than 32 bits give 32."""
    x = _block(input, "sum")
    kind = _widened(x.dtype) if plain(dtype) is None else t.scalar_type(dtype)
    return _reduced(cast(x, kind), np.add, _axis(x, axis), keep_dims)


def xor_sum(input: Any, axis: Any = None, keep_dims: Any = False) -> tensor:  # noqa: A002
    """The exclusive or of integers."""
    x = _block(input, "xor_sum")
    if not x.dtype.is_integer:
        raise ValueError("xor_sum only supported for integers")
    return _reduced(x, np.bitwise_xor, _axis(x, axis), keep_dims)


def reduce_or(input: Any, axis: Any = None, keep_dims: Any = False) -> tensor:  # noqa: A002
    """The or of integers."""
    x = _block(input, "reduce_or")
    return _reduced(x, np.bitwise_or, _axis(x, axis), keep_dims)


def max(  # noqa: A001
    input: Any,  # noqa: A002
    axis: Any = None,
    return_indices: Any = False,
    return_indices_tie_break_left: Any = True,
    keep_dims: Any = False,
) -> Any:
    """The largest element, or along an axis; with its number there, if wanted."""
    return _extreme(input, axis, return_indices, keep_dims, np.fmax, True)


def min(  # noqa: A001
    input: Any,  # noqa: A002
    axis: Any = None,
    return_indices: Any = False,
    return_indices_tie_break_left: Any = True,
    keep_dims: Any = False,
) -> Any:
    """The smallest element, or along an axis; with its number there, if wanted."""
    return _extreme(input, axis, return_indices, keep_dims, np.fmin, False)


def _extreme(input: Any, axis: Any, indices: Any, keep_dims: Any, function: Any, largest: bool) -> Any:  # noqa: A002
    x = _block(input, "max" if largest else "min")
    if plain(indices):
        x = cast(x, t.float32) if x.dtype is t.bfloat16 else x
        value = _reduced(x, function, _axis(x, axis), keep_dims)
        return value, _index(x, axis, keep_dims, largest)
    return _reduced(cast(x, _extreme_type(x.dtype)), function, _axis(x, axis), keep_dims)


def _index(x: tensor, axis: Any, keep_dims: Any, largest: bool) -> tensor:
    along = _axis(x, axis)
    find, data = (np.argmax, x.data) if largest else (np.argmin, x.data)
    if x.dtype.is_float:
        data = np.where(np.isnan(data), np.float64(-np.inf if largest else np.inf), data.astype(np.float64))
    data = np.asarray(find(data, along)).astype(np.int32)
    return made(_shaped(data, x, along, keep_dims)[()], t.int32)


def argmax(input: Any, axis: Any, tie_break_left: Any = True, keep_dims: Any = False) -> tensor:  # noqa: A002
    """The number of the largest element along an axis, as int32: of equal ones the first."""
    return _index(_block(input, "argmax"), axis, keep_dims, True)


def argmin(input: Any, axis: Any, tie_break_left: Any = True, keep_dims: Any = False) -> tensor:  # noqa: A002
    """The number of the smallest element along an axis, as int32: of equal ones the first."""
    return _index(_block(input, "argmin"), axis, keep_dims, False)


def _values(function: Any, *args: tensor) -> tuple[tensor, ...]:
    made_of = function(*args)
    return made_of if isinstance(made_of, tuple) else (made_of,)


def _at(x: tensor, axis: int, i: Any) -> tensor:
    return tensor(np.take(x.data, i, axis), x.dtype)


def reduce(input: Any, axis: Any, combine_fn: Any, keep_dims: Any = False, **_: Any) -> Any:  # noqa: A002
    """Combines elements, or those of several blocks together, by a function of the kernel's."""
    several = isinstance(input, tuple | list)
    blocks = [value_of(x) for x in (input if several else (input,))]
    along = _axis(blocks[0], axis)
    parts = [tensor(x.data.ravel(), x.dtype) for x in blocks] if along is None else blocks
    d = along or 0
    n = parts[0].shape[d]
    while n > 1:
        n //= 2
        first, second = ([_at(x, d, range(lo, lo + n)) for x in parts] for lo in (0, n))
        parts = list(_values(combine_fn, *first, *second))
    results = tuple(tensor(_shaped(np.take(x.data, 0, d), blocks[0], along, keep_dims), x.dtype) for x in parts)
    return results if several else results[0]


def associative_scan(input: Any, axis: Any, combine_fn: Any, reverse: Any = False) -> Any:  # noqa: A002
    """All partial combinations along an axis, by a function of the kernel's."""
    several = isinstance(input, tuple | list)
    blocks = [value_of(x) for x in (input if several else (input,))]
    d = _axis(blocks[0], axis) or 0
    n = blocks[0].shape[d]
    order = range(n - 1, -1, -1) if plain(reverse) else range(n)
    rows: dict[int, tuple[tensor, ...]] = {}
    before: tuple[tensor, ...] | None = None
    for i in order:
        own = tuple(_at(x, d, i) for x in blocks)
        before = rows[i] = own if before is None else _values(combine_fn, *before, *own)
    results = tuple(
        made(np.stack([rows[i][k].data for i in range(n)], d), rows[0][k].dtype) for k in range(len(blocks))
    )
    return results if several else results[0]


def _scanned(x: tensor, function: Any, axis: Any, reverse: Any) -> tensor:
    d = _axis(x, axis) or 0
    data = np.flip(x.data, d) if plain(reverse) else x.data
    data = function(data, axis=d, dtype=x.dtype.numpy)
    return made(np.flip(data, d).copy() if plain(reverse) else data, x.dtype)


def cumsum(input: Any, axis: Any = 0, reverse: Any = False, dtype: Any = None) -> tensor:  # noqa: A002
    """The partial sums along an axis."""
    x = _block(input, "cumsum")
    kind = t.float32 if x.dtype is t.bfloat16 else _widened(x.dtype)
    return _scanned(cast(x, kind if plain(dtype) is None else t.scalar_type(dtype)), np.cumsum, axis, reverse)


def cumprod(input: Any, axis: Any = 0, reverse: Any = False) -> tensor:  # noqa: A002
    """The partial products along an axis."""
    x = _block(input, "cumprod")
    return _scanned(cast(x, t.float32) if x.dtype is t.bfloat16 else x, np.cumprod, axis, reverse)


# -- products


def _tf32(data: np.ndarray) -> np.ndarray:
    """float32 with the 10 bits of fraction that tf32 has: an H100 leaves the others away, and does not round."""
    return (np.ascontiguousarray(data).view(np.uint32) & np.uint32(0xFFFFE000)).view(np.float32)


def _product_type(x: tensor, out_dtype: Any) -> t.dtype:
    if x.dtype.is_integer:
        return t.int32
    wanted = plain(out_dtype)
    if x.dtype is t.float64:
        return t.float64
    return t.float32 if wanted is None else t.scalar_type(wanted)


def dot(
    input: Any,  # noqa: A002
    other: Any,
    acc: Any = None,
    input_precision: Any = None,
    allow_tf32: Any = None,
    max_num_imprecise_acc: Any = None,
    out_dtype: Any = t.float32,
) -> tensor:
    """The matrix product of m×k and k×n elements, or of batches of them; acc is added to it.

    Sums are of float32, of int32 for int8, and of float64 for that. float32 is cut to tf32, unless input_precision is
    "ieee".

    Raises:
        ValueError: the shapes do not fit.
        TypeError: the types are not of one kind.
    """
    x, y = value_of(input), value_of(other)
    if len(x.shape) != len(y.shape) or len(x.shape) not in (2, 3) or x.shape[-1] != y.shape[-2]:
        raise ValueError(
            f"First input shape ({list(x.shape)}) and second input shape {list(y.shape)} are not compatible for matmul "
            "(second index of first shape must be equal to first index of second shape)"
        )
    if x.dtype is not y.dtype and not (x.dtype.is_fp8() and y.dtype.is_fp8()):
        raise TypeError(f"Both operands must be same dtype. Got {x.dtype} and {y.dtype}")
    kind = _product_type(x, out_dtype)
    precision = plain(input_precision)
    short = x.dtype is t.float32 and (precision in ("tf32", None) and plain(allow_tf32) is not False)
    data = _multiplied(x.data, y.data, kind, short)
    spend_product(x.numel, y.shape[-1], 16 if x.dtype is t.float32 else x.dtype.primitive_bitwidth)
    if acc is not None:
        total = value_of(acc)
        if total.shape != data.shape:
            raise ValueError(f"acc is of shape {list(total.shape)}, the product of {list(data.shape)}")
        np.add(total.data.astype(data.dtype, copy=False), data, out=data)
        return tensor(data.astype(total.dtype.numpy, copy=False), total.dtype)
    return tensor(data.astype(kind.numpy, copy=False), kind)


def _multiplied(a: np.ndarray, b: np.ndarray, kind: t.dtype, short: bool) -> np.ndarray:
    if kind is t.int32:
        return (a.astype(np.float64) @ b.astype(np.float64)).astype(np.int64).astype(np.int32)
    wide = np.float64 if kind is t.float64 else np.float32
    a, b = a.astype(wide, copy=False), b.astype(wide, copy=False)
    return _tf32(a) @ _tf32(b) if short else a @ b


def spend_product(elements: int, columns: int, bits: int) -> None:
    """Adds the product of so many elements of so many bits with a matrix of so many columns to a program's work."""
    program = running()
    if program is not None:
        present().products += 2 * elements * columns * program.rates.matrix.get(bits, program.rates.matrix[16])


maximum, minimum = _arithmetic.maximum, _arithmetic.minimum
