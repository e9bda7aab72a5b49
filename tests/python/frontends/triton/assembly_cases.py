"""Instructions of PTX with their operands, for record_assembly.py and test_assembly.py."""

import numpy as np

N = 64

INTEGERS = [
    "add.s32 $0, $1, $2;", "sub.u32 $0, $1, $2;", "mul.lo.s32 $0, $1, $2;", "mul.hi.s32 $0, $1, $2;",
    "mul.hi.u32 $0, $1, $2;", "mad.lo.s32 $0, $1, $2, 7;", "div.s32 $0, $1, $2;", "div.u32 $0, $1, $2;",
    "rem.s32 $0, $1, $2;", "min.s32 $0, $1, $2;", "max.u32 $0, $1, $2;", "and.b32 $0, $1, $2;", "or.b32 $0, $1, 0x0F;",
    "xor.b32 $0, $1, $2;", "not.b32 $0, $1;", "neg.s32 $0, $1;", "abs.s32 $0, $1;", "shl.b32 $0, $1, 5;",
    "shr.s32 $0, $1, 3;", "shr.u32 $0, $1, 3;", "shl.b32 $0, $1, 40;", "shr.s32 $0, $1, 99;", "popc.b32 $0, $1;",
    "clz.b32 $0, $1;", "brev.b32 $0, $1;", "mov.u32 $0, -3;",
    "{ .reg .pred p; setp.lt.s32 p, $1, $2; selp.s32 $0, $1, 100, p; }",
    "{ .reg .pred %p<2>; setp.hi.u32 %p1, $1, $2; mov.u32 $0, 0; @%p1 mov.u32 $0, 1; @!%p1 add.u32 $0, $0, 5; }",
    "{ .reg .s64 w; mul.wide.s32 w, $1, $2; shr.s64 w, w, 16; cvt.u32.u64 $0, w; }",
    "{ .reg .u32 n; mov.u32 n, 0; mov.u32 $0, 0; more: add.u32 $0, $0, $2; add.u32 n, n, 1; "
    ".reg .pred q; setp.lt.u32 q, n, 5; @q bra more; }",
    "cvt.s32.s8 $0, $1; // the lowest byte, with its sign",
]  # fmt: skip
"""Of two int32 arguments, and a result of int32; the second one is not 0."""

FLOATS = [
    "add.f32 $0, $1, $2;", "sub.f32 $0, $1, $2;", "mul.f32 $0, $1, $2;", "fma.rn.f32 $0, $1, $2, $1;",
    "div.rn.f32 $0, $1, $2;", "min.f32 $0, $1, $2;", "max.f32 $0, $1, 0f40000000;", "neg.f32 $0, $1;",
    "abs.f32 $0, $1;", "rcp.rn.f32 $0, $2;", "cvt.rni.f32.f32 $0, $1;", "cvt.rzi.f32.f32 $0, $1;",
]  # fmt: skip
"""Of two float32 arguments, and a result of float32."""

APPROXIMATE = [
    "ex2.approx.f32 $0, $1;", "tanh.approx.f32 $0, $1;", "sin.approx.f32 $0, $1;", "cos.approx.f32 $0, $1;",
    "sqrt.approx.f32 $0, $2;", "rsqrt.approx.f32 $0, $2;", "lg2.approx.f32 $0, $2;",
]  # fmt: skip
"""The same, of instructions that the GPU does not round to the nearest."""

TO_INTEGERS = ["cvt.rni.s32.f32 $0, $1;", "cvt.rzi.s32.f32 $0, $1;", "cvt.rmi.s32.f32 $0, $1;", "mov.b32 $0, $1;"]
"""Of a float32 argument, and a result of int32."""

PACKED = ["{ .reg .b32 k; mov.b32 k, 0x01010101; and.b32 $0, $1, k; }", "not.b32 $0, $1;"]
"""Of an int8 argument, and a result of int8, four at a time."""


def integers() -> tuple[np.ndarray, np.ndarray]:
    """Returns the two arguments of INTEGERS."""
    g = np.random.default_rng(1)
    a = g.integers(-(2**31), 2**31, N).astype(np.int32)
    b = g.integers(1, 1000, N).astype(np.int32)
    a[:4], b[::5] = (0, -1, 2**31 - 1, -(2**31)), -b[::5]
    return a, b


def floats() -> tuple[np.ndarray, np.ndarray]:
    """Returns the two arguments of FLOATS; the second one is positive."""
    g = np.random.default_rng(2)
    a, b = g.uniform(-30, 30, N).astype(np.float32), g.uniform(0.1, 9, N).astype(np.float32)
    a[:3] = 0.5, -2.5, 0.0
    return a, b


def small() -> np.ndarray:
    """Returns the argument of PACKED."""
    return np.random.default_rng(3).integers(-128, 128, N).astype(np.int8)
