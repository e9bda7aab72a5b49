"""Whole numbers, bits, parts and orders of tiles, compared with NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from conftest import NUMPY, same
from kernel_worlds import world_of
from test_kernel_tiles import of, tile_result

import torchemu
import torchemu.language as tl
from torchemu.errors import KernelError

WHOLE = ["int8", "uint8", "int16", "int32", "int64"]

OPERATORS: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "floordiv": (lambda a, b: a // b, np.floor_divide),
    "mod": (lambda a, b: a % b, np.remainder),
    "and": (lambda a, b: a & b, np.bitwise_and),
    "or": (lambda a, b: a | b, np.bitwise_or),
    "xor": (lambda a, b: a ^ b, np.bitwise_xor),
    "not": (lambda a, b: ~a, lambda a, b: np.invert(a)),
    "shl": (lambda a, b: a << (b & 3), lambda a, b: np.left_shift(a, b & 3)),
    "shr": (lambda a, b: a >> (b & 3), lambda a, b: np.right_shift(a, b & 3)),
    "number right": (lambda a, b: (a & 12) // 5, lambda a, b: (a & 12) // 5),
    "number left": (lambda a, b: 100 % (a | 1), lambda a, b: np.remainder(100, a | 1)),
}


def numbers(name: str, seed: int, n: int = 61) -> np.ndarray:
    """All kinds of numbers of a type: its ends, zero and random ones."""
    info = np.iinfo(name)
    some = np.random.default_rng(seed).integers(info.min, info.max, n, dtype=name, endpoint=True)
    some[:4] = info.min, info.max, 0, 1
    return some


@pytest.mark.parametrize("name", WHOLE)
@pytest.mark.parametrize("op", OPERATORS)
def test_whole_numbers(op: str, name: str) -> None:
    tiles, array = OPERATORS[op]
    a, b = numbers(name, 1), numbers(name, 2)[::-1].copy()
    b[b == 0] = 3
    b[(a == np.iinfo(name).min) & (b == -1)] = 2
    with np.errstate(all="ignore"):
        want = array(a, b).astype(name)
    assert same(tile_result(tiles, a, b, like=want), want)


@pytest.mark.parametrize("op", ["and", "or", "xor", "not"])
def test_bits_of_bools(op: str) -> None:
    tiles, array = OPERATORS[op]
    a, b = np.array([False, False, True, True]), np.array([False, True, False, True])
    want = array(a, b)
    assert same(tile_result(tiles, a, b, like=want), want)


@pytest.mark.parametrize("name", ["float32", "float16", "int32", "bool"])
def test_equality(name: str) -> None:
    a = np.array([0, 1, 2, 3, 0]).astype(NUMPY[name])
    b = np.array([0, 2, 2, 0, 1]).astype(NUMPY[name])
    assert same(tile_result(tl.equal, a, b, like=a == b), a == b)
    assert same(tile_result(tl.not_equal, a, b, like=a == b), a != b)
    assert same(tile_result(lambda t: tl.equal(t, 1), a, like=a == b), a == 1)


@pytest.mark.parametrize("to", ["int32", "float32"])
def test_bits_stay_as_they_are(to: str) -> None:
    a = numbers("int32", 3)
    want = a.view(to)
    got = tile_result(lambda t: t.bitcast(getattr(torchemu, to)), a, like=want)
    assert (got.view(np.int32) == a).all()


KEYS: dict[str, Any] = {
    "row": 1,
    "last": (-1, -1),
    "columns": (slice(None), slice(1, 5, 2)),
    "backwards": (Ellipsis, slice(None, None, -1)),
    "new": (None, slice(None), None, 2),
    "nothing": slice(2, 2),
}


@pytest.mark.parametrize("name", KEYS)
def test_parts(name: str) -> None:
    a = np.random.default_rng(4).standard_normal((3, 6)).astype(np.float32)
    want = a[KEYS[name]]
    assert same(tile_result(lambda t: t[KEYS[name]], a, like=want), want)


def test_pairs() -> None:
    a, b = (np.random.default_rng(seed).standard_normal((3, 5)).astype(np.float32) for seed in (5, 6))
    assert same(tile_result(tl.join, a, b, like=np.stack((a, b), -1)), np.stack((a, b), -1))
    assert same(tile_result(lambda x, y: tl.split(tl.join(x, y))[1] - x, a, b, like=a), b - a)


@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("name", ["float32", "float16", "int32"])
def test_along_an_axis(name: str, axis: int) -> None:
    a = np.random.default_rng(7).integers(-4, 5, (4, 7)).astype(NUMPY[name])
    total = np.cumsum(a, axis=axis, dtype=np.int64 if name == "int32" else np.float32)
    want = total if name == "int32" else total.astype(a.dtype)
    assert same(tile_result(lambda t: tl.cumsum(t, axis), a, like=want), want)
    for descending in (False, True):
        want = np.sort(a, axis=axis)
        want = np.flip(want, axis).copy() if descending else want
        assert same(tile_result(lambda t, d=descending: tl.sort(t, axis, d), a, like=want), want)
    for tiles, array in ((tl.argmax, np.argmax), (tl.argmin, np.argmin)):
        want = array(a, axis=axis).astype(np.int32)
        assert same(tile_result(lambda t, f=tiles: f(t, axis), a, like=want), want)


@pytest.mark.parametrize("axis", [0, 1])
def test_gather(axis: int) -> None:
    rng = np.random.default_rng(8)
    a = rng.standard_normal((4, 6)).astype(np.float32)
    shape = (9, 6) if axis == 0 else (4, 9)
    index = rng.integers(0, a.shape[axis], shape).astype(np.int32)
    want = np.take_along_axis(a, index, axis)
    assert same(tile_result(lambda t, i: tl.gather(t, i, axis), a, index, like=want), want)


MISTAKES: dict[str, tuple[Callable[[Any], Any], type[Exception], str]] = {
    "float bits": (lambda t: t & 1, TypeError, "its operands are whole numbers or bools"),
    "size of bits": (lambda t: t.bitcast(torchemu.int64), ValueError, "elements have another size"),
    "index": (lambda t: t[7], IndexError, "out of bounds"),
    "kind of index": (lambda t: t["a"], TypeError, "whole numbers, slices"),
    "split": (tl.split, ValueError, "its last dimension must be 2"),
    "axis": (lambda t: tl.cumsum(t, 2), ValueError, "cumsum along axis 2"),
    "nothing": (lambda t: tl.argmax(t[:0], 0), ValueError, "there is no element"),
    "join": (lambda t: tl.join(t, t[:1]), ValueError, "they must be equal"),
    "gather": (lambda t: tl.gather(t, t, 0), TypeError, "they must be whole numbers"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes(name: str) -> None:
    function, kind, text = MISTAKES[name]

    @torchemu.kernel
    def body(x: Any) -> None:
        with pytest.raises(kind, match=text):
            function(tl.load(x, (3, 4))).numpy()

    with world_of(1):
        body[1](of(np.ones((3, 4), np.float32)))
        torchemu.ahbm.synchronize()


def test_an_index_beyond_the_tile_ends_the_kernel() -> None:
    @torchemu.kernel
    def body(x: Any) -> None:
        tl.store(x, tl.gather(tl.load(x, (3, 4)), tl.full((3, 4), 9, torchemu.int32), 0))

    with world_of(1):
        body[1](of(np.ones((3, 4), np.float32)))
        with pytest.raises(KernelError, match="gather: an index is not one of 0 to 2"):
            torchemu.ahbm.synchronize()
