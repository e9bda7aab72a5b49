"""tl.dot_scaled: products of micro-scaled formats, in which 32 elements along the common dimension have one scale.

Scales are powers of two, as bytes: 2^(n - 127), and 255 for NaN. Elements are widened to bfloat16, or to float16 where
an operand has that, and sums are of float32, as on a device without units for such formats.
"""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

from torchemu.frontends.triton import _types as t
from torchemu.frontends.triton._reductions import spend_product
from torchemu.frontends.triton._values import plain, tensor, value_of

BLOCK = 32
"""The elements that have one scale."""

_E2M1 = np.array([s * n for s in (1, -1) for n in (0, 0.5, 1, 1.5, 2, 3, 4, 6)], np.float32)
_WIDE = {"bf16": np.dtype(ml_dtypes.bfloat16), "fp16": np.dtype(np.float16)}
_BYTES = {"e4m3": np.dtype(ml_dtypes.float8_e4m3fn), "e5m2": np.dtype(ml_dtypes.float8_e5m2)}
_FORMATS = (*_BYTES, "e2m1", *_WIDE)


def dot_scaled(
    lhs: Any,
    lhs_scale: Any,
    lhs_format: Any,
    rhs: Any,
    rhs_scale: Any,
    rhs_format: Any,
    acc: Any = None,
    fast_math: Any = False,
    lhs_k_pack: Any = True,
    rhs_k_pack: Any = True,
    out_dtype: Any = t.float32,
) -> tensor:
    """The matrix product of m×k and k×n elements with scales; acc is added to it.

    Args:
        lhs, rhs: the elements; of e2m1 two in a byte, the first one in the lower bits.
        lhs_scale, rhs_scale: uint8 of m×(k/32) and n×(k/32); None for 1.
        lhs_format, rhs_format: "e2m1", "e4m3", "e5m2", "bf16" or "fp16".
        acc: float32.
        fast_math: means nothing here.
        lhs_k_pack, rhs_k_pack: two elements in a byte are neighbours along k, and else along the other dimension.
        out_dtype: of the result.

    Raises:
        ValueError: an unknown format; shapes or scales that do not fit.
    """
    kinds = [_format(lhs_format), _format(rhs_format)]
    x = _elements(value_of(lhs), kinds[0], -1 if plain(lhs_k_pack) else -2)
    y = _elements(value_of(rhs), kinds[1], -2 if plain(rhs_k_pack) else -1)
    if x.shape[-1] != y.shape[-2]:
        raise ValueError(f"tl.dot_scaled of {list(x.shape)} and {list(y.shape)} elements: the common dimension differs")
    x = x * _scales(lhs_scale, x.shape, "lhs_scale")
    y = y * np.swapaxes(_scales(rhs_scale, np.swapaxes(y, -1, -2).shape, "rhs_scale"), -1, -2)
    wide = _WIDE["fp16" if "fp16" in kinds else "bf16"]
    with np.errstate(all="ignore"):
        a, b = (operand.astype(wide).astype(np.float32) for operand in (x, y))
        data = a @ b
    spend_product(x.size, y.shape[-1], 16 if set(kinds) & set(_WIDE) else 8)
    if plain(acc) is not None:
        data = data + value_of(acc).data
    kind = t.scalar_type(plain(out_dtype))
    return tensor(data.astype(kind.numpy, copy=False), kind)


def _format(given: Any) -> str:
    name = str(plain(given))
    if name not in _FORMATS:
        raise ValueError(f"tl.dot_scaled: the format {name!r} is none of {', '.join(_FORMATS)}")
    return name


def _elements(x: tensor, kind: str, packed: int) -> np.ndarray:
    """The elements of an operand as float32.

    Args:
        packed: the axis along which two are in a byte, where they are.
    """
    data = np.asarray(x.data)
    if kind == "e2m1":
        raw = data.view(np.uint8)
        both = np.stack((_E2M1[raw & 15], _E2M1[raw >> 4]), axis=raw.ndim if packed == -1 else raw.ndim - 1)
        shape = list(raw.shape)
        shape[packed] *= 2
        return both.reshape(shape)
    wanted = _BYTES.get(kind) or _WIDE[kind]
    if data.dtype.itemsize != wanted.itemsize:
        raise ValueError(f"tl.dot_scaled: an operand of {x.dtype} is none of {kind}")
    return np.ascontiguousarray(data).view(wanted).astype(np.float32)


def _scales(given: Any, shape: tuple[int, ...], name: str) -> np.ndarray:
    """The scale of each element; the blocks are along the last axis."""
    if plain(given) is None:
        return np.ones((1, 1), np.float32)
    scales = np.asarray(value_of(given).data).view(np.uint8)
    wanted = (*shape[:-1], shape[-1] // BLOCK)
    if scales.shape != wanted:
        raise ValueError(f"tl.dot_scaled: {name} is of shape {list(scales.shape)}, and has to be of {list(wanted)}")
    numbers = np.where(scales == 255, np.nan, np.exp2(scales.astype(np.float64) - 127))
    return np.repeat(numbers, BLOCK, axis=-1)
