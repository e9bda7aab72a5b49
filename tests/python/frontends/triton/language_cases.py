"""Rows of operations, types and values, for the emulated language and for Triton on a GPU alike.

It imports nothing of either: record_triton.py runs the rows on a GPU, test_language.py here.
"""

from __future__ import annotations

import itertools

SIZES = {
    "int1": 1, "int8": 1, "int16": 2, "int32": 4, "int64": 8, "uint8": 1, "uint16": 2, "uint32": 4, "uint64": 8,
    "float16": 2, "bfloat16": 2, "float32": 4, "float64": 8, "float8e4nv": 1, "float8e5": 1,
}  # fmt: skip
"""Bytes of an element, by the language's name for its type."""

NUMBERS = [kind for kind in SIZES if not kind.startswith("float8")]
INTEGERS = [kind for kind in NUMBERS if "int" in kind]

FLOATS = (
    0.0, 1.0, -1.5, 0.1, 3.14159, -7.25, 65504.0, 1e-7, 448.0, 300.7, float("nan"), float("inf"), float("-inf"), 2.5,
    1e30, -0.3,
)  # fmt: skip
WHOLE = (0, 1, -1, 7, -7, 127, -128, 100, 32767, -32768, 2**31 - 1, -(2**31), 255, 3, 2**40 + 5, -9)
"""16 values, which integers have modulo their size."""

SHIFT = 5
"""By how many places the second operand's values are turned."""

Row = tuple[str, str, str]
"""An expression of a and b, and their types."""


def _pairs() -> list[Row]:
    rows: list[Row] = []
    for op in ("+", "-", "*", "/", "%"):
        rows += [(f"a {op} b", x, y) for x, y in itertools.product(NUMBERS, NUMBERS) if op not in "-*" or x <= y]
    mixed = (("int32", "uint32"), ("int8", "int32"), ("uint8", "int16"), ("int64", "uint32"))
    for op in ("//", "&", "|", "^", "<<", ">>"):
        right = "(b & 7)" if op in ("<<", ">>") else "b"
        every = itertools.product(INTEGERS, INTEGERS)
        rows += [(f"a {op} {right}", x, y) for x, y in every if op == "//" or x == y or (x, y) in mixed]
    compared = (
        ("int32", "uint32"), ("int8", "uint8"), ("int64", "uint64"), ("float16", "bfloat16"), ("float32", "int32"),
        ("uint16", "int16"), ("float16", "float32"), ("int1", "int32"), ("bfloat16", "bfloat16"),
        ("float64", "float32"),
    )  # fmt: skip
    rows += [(f"a {op} b", x, y) for op in ("<", "==", ">=") for x, y in compared]
    return rows


_OF_ONE = (
    "a + 1", "a * 2.5", "-a", "~a", "tl.abs(a)", "tl.cumsum(a, 0)", "tl.where(b == b, a, b)", "tl.minimum(a, b)",
    "tl.maximum(a, b)", "a + 3000000000", "tl.sort(a)", "tl.flip(a)", "tl.argmax(a, 0) + i * 0",
    "tl.argmin(a, 0) + i * 0", "tl.xor_sum(a, 0) + i * 0", "a / 3", "a // 3", "a % 3", "1 / a",
    "tl.sum(a, 0) + tl.zeros((16,), tl.int1)", "tl.max(a, 0) + tl.zeros((16,), tl.int1)",
    "tl.min(a, 0) + tl.zeros((16,), tl.int1)", "a + (i > 3)", "a * b + a",
)  # fmt: skip

_OF_FLOATS = (
    "tl.exp(a)", "tl.exp2(a)", "tl.log(a)", "tl.log2(a)", "tl.sqrt(a)", "tl.rsqrt(a)", "tl.sin(a)", "tl.cos(a)",
    "tl.erf(a)", "tl.floor(a)", "tl.ceil(a)", "tl.fma(a, b, a)", "tl.div_rn(a, b)", "tl.sqrt_rn(a)", "tl.fdiv(a, b)",
)  # fmt: skip


def rows() -> list[Row]:
    """Returns all rows, each once."""
    made = _pairs()
    made += [(f"a.to(tl.{to})", kind, kind) for kind in SIZES for to in SIZES]
    made += [(text, kind, kind) for kind in NUMBERS for text in _OF_ONE]
    made += [(text, kind, kind) for kind in ("float16", "float32", "float64") for text in _OF_FLOATS]
    for kind in ("float64", "float32"):
        for to in ("float16", "bfloat16"):
            made.append((f"a.to(tl.{to}, fp_downcast_rounding='rtz')", kind, kind))
    return list(dict.fromkeys(made))


SOURCE = """\
import triton
import triton.language as tl


@triton.jit
def typed(x, y, z, o):
    i = tl.arange(0, 16)
    a = tl.load(x + i)
    b = tl.load(y + i)
    c = {expression}
    tl.static_print("TYPE", c.dtype)
    tl.store(z + i, tl.where(c == c, 1, 0).to(tl.int32))


@triton.jit
def result(x, y, z, o):
    i = tl.arange(0, 16)
    a = tl.load(x + i)
    b = tl.load(y + i)
    c = {expression}
    tl.store(o + i, c)
"""
"""A module with an expression: one kernel prints its type, the other stores its values."""

SHORT = {
    "fp16": "float16",
    "bf16": "bfloat16",
    "fp32": "float32",
    "fp64": "float64",
    "fp8e4nv": "float8e4nv",
    "fp8e5": "float8e5",
}
"""Names of types as the language prints them."""
