"""Oracle of the tests of tensor operations: loops over Python numbers."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from conftest import NUMPY

import torchemu as torch

ULP = {"float64": 2.0**-52, "float32": 2.0**-23, "float16": 2.0**-10, "bfloat16": 2.0**-7}
"""The distance from 1 to the next number."""

FLOATS = list(ULP)
INTEGERS = [n for n in NUMPY if "int" in n]


def tensor(values: Any, name: str) -> torch.Tensor:
    """A tensor of Python numbers, through NumPy's conversion alone."""
    with np.errstate(all="ignore"):
        return torch.from_numpy(np.asarray(np.array(values).astype(NUMPY[name])))


def numbers(t: torch.Tensor) -> list[Any]:
    """The elements in row-major order, as Python numbers."""
    return np.asarray(t).astype(float if t.dtype.is_floating_point else object).ravel().tolist()


def indices(shape: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """All indices of a shape, in row-major order."""
    return itertools.product(*map(range, shape))


def broadcast(shapes: Sequence[Sequence[int]]) -> tuple[int, ...]:
    """The shape to which all broadcast."""
    ndim = max(map(len, shapes))
    padded = [(1,) * (ndim - len(s)) + tuple(s) for s in shapes]
    return tuple(0 if 0 in sizes else max(sizes) for sizes in zip(*padded, strict=True))


def at(t: torch.Tensor, index: tuple[int, ...]) -> Any:
    """The element that broadcasting puts there, as a Python number."""
    own = index[len(index) - len(t.shape) :]
    value = np.asarray(t)[tuple(0 if n == 1 else i for i, n in zip(own, t.shape, strict=True))]
    return float(value) if t.dtype.is_floating_point else value.item()


def wrapped(value: int, name: str) -> int | bool:
    """The low bits of an integer."""
    if name == "bool":
        return bool(value)
    limits = np.iinfo(NUMPY[name])
    return (value - int(limits.min)) % (1 << limits.bits) + int(limits.min)


def careful(fn: Callable[..., float]) -> Callable[..., float]:
    """Returns what a function of math is where math refuses: NaN outside of its domain, infinite at a pole."""

    def call(*args: float) -> float:
        try:
            return fn(*args)
        except ValueError:
            return math.nan
        except OverflowError:
            return math.inf

    return call


def assert_near(got: torch.Tensor, want: Sequence[float], ulps: float) -> None:
    """That all elements are the wanted ones, but for so many units in the last place."""
    kind = np.finfo(np.float64) if got.dtype.name == "float64" else torch.finfo(got.dtype)
    step, largest, tiny = ULP[got.dtype.name], float(kind.max), float(kind.tiny)
    for i, (a, b) in enumerate(zip(numbers(got), want, strict=True)):
        if math.isnan(b):
            assert math.isnan(a), f"element {i}: {a}, not NaN"
        elif math.isinf(b) or abs(b) > largest * (1 + step):
            assert a == math.copysign(math.inf, b), f"element {i}: {a}, not {b}"
        else:
            slack = ulps * step * max(abs(b), tiny)
            assert abs(a - b) <= slack, f"element {i}: {a}, not {b}: {abs(a - b) / slack * ulps:.2f} ulp"
