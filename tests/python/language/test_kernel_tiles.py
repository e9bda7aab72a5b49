"""Arithmetic of tiles, compared with NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from conftest import NUMPY, same
from kernel_worlds import world_of

import torchemu
import torchemu as torch
import torchemu.language as tl

WORLDS = [1, 2, 3, 4, 8, 16]


def of(array: np.ndarray) -> torch.Tensor:
    """A tensor of a rank's device."""
    return torch.from_numpy(array.copy()).to(f"ahbm:{torch.ahbm.current_device()}")


def tile_result(function: Callable[..., Any], *arrays: np.ndarray, like: np.ndarray) -> np.ndarray:
    """Returns what a kernel stores that applies the function to tiles of the arrays."""

    @torchemu.kernel
    def body(out: Any, *pointers: Any) -> None:
        tiles = [tl.load(p, a.shape) for p, a in zip(pointers, arrays, strict=True)]
        tl.store(out, function(*tiles))

    with world_of(1):
        out = of(np.zeros_like(like))
        body[1](out, *[of(a) for a in arrays])
        return out.numpy().copy()


def short(name: str, seed: int, shape: tuple[int, ...] = (37,)) -> np.ndarray:
    rng = np.random.default_rng(seed)
    kind = np.dtype(NUMPY[name])
    if kind.kind == "b":
        return rng.integers(0, 2, shape).astype(bool)
    if kind.kind in "iu":
        return rng.integers(1, 50, shape).astype(kind)
    return (rng.standard_normal(shape) * 3).astype(np.float32).astype(kind)


BINARY: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "add": (lambda a, b: a + b, np.add),
    "sub": (lambda a, b: a - b, np.subtract),
    "mul": (lambda a, b: a * b, np.multiply),
    "maximum": (tl.maximum, np.maximum),
    "minimum": (tl.minimum, np.minimum),
}


@pytest.mark.parametrize("op", BINARY)
@pytest.mark.parametrize("name", ["float32", "float64", "float16", "bfloat16", "int32", "int64", "int8", "uint8"])
def test_arithmetic_of_tiles(op: str, name: str) -> None:
    """Shorter floats are calculated in float32 and rounded once."""
    tiles, ufunc = BINARY[op]
    a, b = short(name, 1), short(name, 2)
    wide = np.float32 if name in ("float16", "bfloat16") else a.dtype
    want = ufunc(a.astype(wide), b.astype(wide)).astype(a.dtype)
    assert same(tile_result(tiles, a, b, like=want), want)


UNARY: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "exp": (tl.exp, np.exp),
    "exp2": (tl.exp2, np.exp2),
    "log": (lambda t: tl.log(tl.absolute(t)), lambda x: np.log(np.abs(x))),
    "log2": (lambda t: tl.log2(tl.absolute(t)), lambda x: np.log2(np.abs(x))),
    "sqrt": (lambda t: tl.sqrt(t * t), lambda x: np.sqrt(x * x)),
    "rsqrt": (lambda t: tl.rsqrt(t * t + 1), lambda x: 1 / np.sqrt(x * x + 1)),
    "sin": (tl.sin, np.sin),
    "cos": (tl.cos, np.cos),
    "tanh": (tl.tanh, np.tanh),
    "sigmoid": (tl.sigmoid, lambda x: 1 / (1 + np.exp(-x))),
    "negative": (lambda t: -t, np.negative),
    "scalar right": (lambda t: t * 2 - 0.5, lambda x: x * np.float32(2) - np.float32(0.5)),
    "scalar left": (lambda t: 1 / (2 + t * t), lambda x: np.float32(1) / (2 + x * x)),
    "where": (lambda t: tl.where(t > 0, t, 0.0), lambda x: np.where(x > 0, x, np.float32(0))),
}


@pytest.mark.parametrize("op", UNARY)
def test_functions_of_tiles(op: str) -> None:
    tiles, array = UNARY[op]
    x = short("float32", 3)
    want = array(x).astype(np.float32)
    assert same(tile_result(tiles, x, like=want), want)


def test_dtypes_meet_as_those_of_tensors_do() -> None:
    """Against the tensors themselves."""
    names = ["bool", "uint8", "int32", "int64", "float16", "bfloat16", "float32", "float64"]
    numbers = [True, 2, 2.5]
    seen = []

    @torchemu.kernel
    def meet(*pointers: Any) -> None:
        tiles = [tl.load(p, 1) for p in pointers]
        seen.extend([(a + b).dtype for a in tiles for b in [*tiles, *numbers]])

    with world_of(1):
        tensors = [torch.ones(1, dtype=name) for name in names]
        meet[1](*tensors)
        tensors[0].wait()
        assert seen == [(a + b).dtype for a in tensors for b in [*tensors, *numbers]]
    assert len(seen) == 8 * 11


def test_reductions_shapes_and_conversions() -> None:
    x = short("float32", 5, (6, 7))
    assert same(tile_result(lambda t: tl.sum(t, axis=1), x, like=x.sum(1)), x.sum(1))
    assert same(tile_result(lambda t: tl.max(t, axis=0), x, like=x.max(0)), x.max(0))
    assert same(tile_result(tl.min, x, like=x.min(keepdims=True).reshape(1)), x.min(keepdims=True).reshape(1))
    assert same(tile_result(lambda t: tl.trans(t), x, like=x.T.copy()), x.T.copy())
    assert same(tile_result(lambda t: t.reshape(42), x, like=x.reshape(42)), x.reshape(42))
    assert same(tile_result(lambda t: t.to(torch.float16), x, like=x.astype(np.float16)), x.astype(np.float16))
    want = (x - x.max(1, keepdims=True)).astype(np.float32)
    got = tile_result(lambda t: t - tl.max(t, axis=1).reshape(6, 1), x, like=want)
    assert same(got, want)
    i = np.arange(5, 16, dtype=np.int32)
    assert same(tile_result(lambda t: t * 0 + tl.arange(5, 16), i, like=i), i)


@pytest.mark.parametrize(("m", "n", "k"), [(1, 1, 1), (4, 5, 6), (17, 3, 64)])
@pytest.mark.parametrize("name", ["float16", "float32", "float64"])
def test_dot(m: int, n: int, k: int, name: str) -> None:
    """Small whole numbers: any order of additions is exact."""
    rng = np.random.default_rng(m)
    a = rng.integers(-4, 5, (m, k)).astype(name)
    b = rng.integers(-4, 5, (k, n)).astype(name)
    want = (a.astype(np.float64) @ b.astype(np.float64)).astype("float64" if name == "float64" else "float32")
    assert same(tile_result(tl.dot, a, b, like=want), want)
    assert same(tile_result(lambda x, y: tl.dot(x, y, tl.dot(x, y)), a, b, like=want), 2 * want)


def test_an_attention_like_program() -> None:
    """Loads, the matrix and the vector pipe, one after another without a flag: the interlock orders them."""
    q, k, v = (short("float32", s, (16, 16)) for s in (1, 2, 3))

    def softmax(x: np.ndarray) -> np.ndarray:
        e = np.exp(x - x.max(1, keepdims=True))
        return e / e.sum(1, keepdims=True)

    def tiles(q: Any, k: Any, v: Any) -> Any:
        s = tl.dot(q, tl.trans(k))
        e = tl.exp(s - tl.max(s, axis=1).reshape(16, 1))
        return tl.dot(e / tl.sum(e, axis=1).reshape(16, 1), v)

    want = softmax(q @ k.T) @ v
    np.testing.assert_allclose(tile_result(tiles, q, k, v, like=want), want, rtol=1e-5, atol=1e-5)
