"""Instructions of PTX that calculate: each takes arrays of its type, and gives one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from torchemu.frontends.triton._ptx import TYPES, Instruction

Values = list[np.ndarray]


def _wide(kind: np.dtype) -> np.dtype:
    return np.dtype(f"{kind.kind}{2 * kind.itemsize}")


def _product(one: Instruction, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    kind = one.kind
    if kind.kind not in "iu":
        return a * b
    if one.has("wide"):
        return a.astype(_wide(kind)) * b.astype(_wide(kind))
    if not one.has("hi"):
        return a * b
    if kind.itemsize == 8:
        whole = [int(x) * int(y) >> 64 for x, y in zip(a, b, strict=True)]
        return np.array([n % (1 << 64) for n in whole], np.uint64).view(kind)
    return (a.astype(_wide(kind)) * b.astype(_wide(kind)) >> 8 * kind.itemsize).astype(kind)


def _sum_of_product(one: Instruction, a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    if one.kind.kind in "iu":
        return _product(one, a, b) + c
    wide = np.longdouble if one.kind.itemsize > 4 else np.float64
    return (a.astype(wide) * b.astype(wide) + c.astype(wide)).astype(one.kind)


def _divided(one: Instruction, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    if one.kind.kind not in "iu":
        return a / b
    quotient = np.abs(a.astype(object)) // np.abs(b.astype(object))
    return np.array(np.where((a < 0) != (b < 0), -quotient, quotient), one.kind)


def _shifted(left: bool) -> Callable[..., np.ndarray]:
    def shift(one: Instruction, a: np.ndarray, by: np.ndarray) -> np.ndarray:
        bits = 8 * one.kind.itemsize
        by = np.minimum(by.astype(np.uint32), bits)
        full = by == bits
        moved = a << np.where(full, 0, by).astype(a.dtype) if left else a >> np.where(full, 0, by).astype(a.dtype)
        sign = (a >> (bits - 1)).astype(a.dtype) if not left and one.kind.kind == "i" else np.zeros_like(a)
        return np.where(full, sign, moved)

    return shift


def _in_float32(function: Callable[[np.ndarray], np.ndarray]) -> Callable[..., np.ndarray]:
    def call(one: Instruction, a: np.ndarray) -> np.ndarray:
        return function(a.astype(np.float64)).astype(one.kind)

    return call


def _least(smaller: bool) -> Callable[..., np.ndarray]:
    def call(one: Instruction, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        if one.kind.kind in "iu" or one.has("NaN"):
            return (np.minimum if smaller else np.maximum)(a, b)
        return (np.fmin if smaller else np.fmax)(a, b)

    return call


def _counted(function: Callable[[int, int], int]) -> Callable[..., np.ndarray]:
    def call(one: Instruction, a: np.ndarray) -> np.ndarray:
        bits = 8 * one.kind.itemsize
        return np.array([function(int(x) % (1 << bits), bits) for x in a], np.uint32)

    return call


_FUNCTIONS: dict[str, Callable[..., np.ndarray]] = {
    "mov": lambda one, a: a,
    "add": lambda one, a, b: a + b,
    "sub": lambda one, a, b: a - b,
    "mul": _product,
    "mul24": _product,
    "mad": _sum_of_product,
    "fma": _sum_of_product,
    "div": _divided,
    "rem": lambda one, a, b: a - _divided(one, a, b) * b,
    "min": _least(True),
    "max": _least(False),
    "neg": lambda one, a: -a,
    "abs": lambda one, a: np.abs(a),
    "and": lambda one, a, b: a & b,
    "or": lambda one, a, b: a | b,
    "xor": lambda one, a, b: a ^ b,
    "not": lambda one, a: a ^ 1 if one.has("pred") else ~a,
    "shl": _shifted(True),
    "shr": _shifted(False),
    "ex2": _in_float32(np.exp2),
    "lg2": _in_float32(np.log2),
    "rcp": _in_float32(lambda a: 1 / a),
    "sqrt": _in_float32(np.sqrt),
    "rsqrt": _in_float32(lambda a: 1 / np.sqrt(a)),
    "sin": _in_float32(np.sin),
    "cos": _in_float32(np.cos),
    "tanh": _in_float32(np.tanh),
    "popc": _counted(lambda n, bits: n.bit_count()),
    "clz": _counted(lambda n, bits: bits - n.bit_length()),
    "brev": _counted(lambda n, bits: int(f"{n:0{bits}b}"[::-1], 2)),
}

_COMPARED: dict[str, Callable[[Any, Any], Any]] = {
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
    "lo": np.less,
    "ls": np.less_equal,
    "hi": np.greater,
    "hs": np.greater_equal,
}

NAMES = {*_FUNCTIONS, "setp", "selp", "cvt"}
"""The instructions that calculate."""


def operand_types(one: Instruction, count: int) -> list[np.dtype]:
    """Returns the types in which an instruction reads its operands.

    Args:
        count: how many there are.
    """
    kinds = [one.kind] * count
    if one.name in ("shl", "shr"):
        kinds[1:] = [TYPES["u32"]]
    if one.name == "mad" and one.has("wide"):
        kinds[2:] = [_wide(one.kind)]
    if one.name == "selp":
        kinds[2:] = [TYPES["pred"]]
    return kinds


def calculated(one: Instruction, values: Values) -> np.ndarray:
    """Returns the result of an instruction.

    Raises:
        NotImplementedError: of one that is not emulated.
    """
    if one.name == "setp":
        compare = one.has(*_COMPARED)
        if not compare:
            raise NotImplementedError(f"inline assembly: {one.text!r} is not emulated: the comparison is not known")
        return _COMPARED[compare](*values).astype(np.uint8)
    if one.name == "selp":
        return np.where(values[2] != 0, values[0], values[1])
    if one.name == "cvt":
        return _converted(one, values[0])
    return _FUNCTIONS[one.name](one, *values)


_WHOLE = {"rni": np.rint, "rzi": np.trunc, "rmi": np.floor, "rpi": np.ceil}


def _converted(one: Instruction, a: np.ndarray) -> np.ndarray:
    to = next(TYPES[m] for m in one.modifiers if m in TYPES)
    whole = _WHOLE.get(one.has(*_WHOLE))
    if a.dtype.kind in "iu" or (whole is None and to.kind not in "iu"):
        return a.astype(to)
    rounded = (whole or np.rint)(a)
    if to.kind not in "iu":
        return rounded.astype(to)
    limits = np.iinfo(to)
    kept = np.where(np.isnan(rounded), 0, np.clip(rounded.astype(np.float64), float(limits.min), float(limits.max)))
    return np.array([min(max(int(x), limits.min), limits.max) for x in kept], to)
