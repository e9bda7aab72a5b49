"""Reductions, scans, sorting: against loops over the elements of each line."""

from __future__ import annotations

import functools
import itertools
import math
import operator
import random
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from conftest import REAL, OpenWorld
from tensor_oracle import FLOATS, INTEGERS, ULP, assert_near, indices, numbers, tensor, wrapped

import torchemu as torch

Tensor = torch.Tensor
SHAPES = [(5,), (3, 4), (2, 3, 4), (1, 1), (2, 1, 3)]


@pytest.fixture(autouse=True)
def world(open_world: OpenWorld) -> torch.World:
    return open_world()


def some(shape: Sequence[int], kind: str, seed: int = 0) -> Tensor:
    rng = random.Random(f"{shape} {kind} {seed}")
    n = math.prod(shape)
    if kind == "bool":
        return tensor([rng.random() < 0.5 for _ in range(n)], kind).reshape(shape)
    low, high = (0, 12) if kind.startswith("u") else (-12, 12)
    draw = (lambda: rng.uniform(-4, 4)) if "float" in kind else (lambda: rng.randint(low, high))
    return tensor([draw() for _ in range(n)], kind).reshape(tuple(shape))


def lines(t: Tensor, dims: Sequence[int]) -> list[list[Any]]:
    """The elements that a reduction over these dimensions makes one of, for each element of its result."""
    kept = [a for a in range(len(t.shape)) if a not in dims]
    array = np.asarray(t).astype(float if t.dtype.is_floating_point else object)
    result = []
    for outer in indices([t.shape[a] for a in kept]):
        line = []
        for inner in indices([t.shape[a] for a in dims]):
            index = [0] * len(t.shape)
            for a, i in [*zip(kept, outer, strict=True), *zip(dims, inner, strict=True)]:
                index[a] = i
            line.append(array[tuple(index)])
        result.append(line)
    return result


def every_dims(shape: Sequence[int]) -> list[tuple[int, ...]]:
    axes = range(len(shape))
    return [d for n in range(1, len(shape) + 1) for d in itertools.combinations(axes, n)]


# -- sums


@pytest.mark.parametrize("kind", [*INTEGERS, "bool"])
def test_sums_of_integers_are_int64(kind: str) -> None:
    t = some((2, 3, 4), kind)
    for dims in every_dims(t.shape):
        got = t.sum(dims)
        assert got.dtype is torch.int64 and numbers(got) == [sum(map(int, line)) for line in lines(t, dims)]
        assert t.sum(dims, keepdim=True).shape == tuple(1 if a in dims else n for a, n in enumerate(t.shape))
    assert t.sum().item() == sum(map(int, numbers(t)))
    assert numbers(t.prod(1)) == [
        wrapped(functools.reduce(operator.mul, map(int, line)), "int64") for line in lines(t, [1])
    ]
    assert t.sum(dtype=torch.int8).item() == wrapped(sum(map(int, numbers(t))), "int8")
    assert t.sum(dtype=torch.float64).item() == sum(map(int, numbers(t)))


@pytest.mark.parametrize("kind", FLOATS)
@pytest.mark.parametrize("shape", SHAPES)
def test_sums_and_means_of_floats(shape: tuple[int, ...], kind: str) -> None:
    t = some(shape, kind)
    for dims in every_dims(shape):
        exact = [sum(map(Fraction, line), Fraction()) for line in lines(t, dims)]
        size = max(sum(abs(v) for v in line) for line in lines(t, dims))
        # short floats are summed in float32: the one rounding at the end is all that shows
        slack = size * (2.0**-50 if kind == "float64" else 2.0**-20)
        for got, divisor in ((t.sum(dims), 1), (t.mean(dims), len(lines(t, dims)[0]))):
            assert got.dtype is t.dtype
            for a, b in zip(numbers(got), exact, strict=True):
                want = float(b / divisor)
                assert abs(a - want) <= slack + 0.5 * ULP[kind] * abs(want) * 1.001


def test_short_floats_are_summed_in_float32() -> None:
    for kind, many in ((torch.float16, 4000), (torch.bfloat16, 1000)):
        ones = torch.ones(many, dtype=kind)
        assert ones.sum().item() == torch.tensor(float(many)).to(kind).item()
        assert ones.reshape(many, 1).expand(many, 3).sum(0).tolist() == [torch.tensor(float(many)).to(kind).item()] * 3
        assert ones.cumsum(0)[-1].item() == ones.sum().item() == ones.mean().item() * many or kind is torch.bfloat16
    assert torch.full((10,), 60000.0, dtype=torch.float16).mean().item() == 60000.0


def test_reductions_of_nothing() -> None:
    e = torch.zeros(0, 3)
    assert e.sum().item() == 0 and e.sum(0).tolist() == [0, 0, 0] and e.sum(1).shape == (0,)
    assert e.prod().item() == 1 and math.isnan(e.mean().item()) and e.all().item() and not e.any().item()
    assert e.logsumexp(0).tolist() == [-math.inf] * 3 and e.norm().item() == 0 and e.cumsum(0).shape == (0, 3)
    assert e.max(1).values.shape == (0,) and e.argmax(1).shape == (0,) and e.softmax(0).shape == (0, 3)
    for name in ("max", "min", "amax"):
        with pytest.raises(RuntimeError, match=rf"{name}\(\): Expected reduction dim to be specified"):
            getattr(e, name)()
    with pytest.raises(IndexError, match=r"max\(\): Expected reduction dim 0 to have non-zero size"):
        e.max(0)
    with pytest.raises(IndexError, match=r"argmax\(\): Expected reduction dim to be specified"):
        e.argmax()


def test_dimensions_of_reductions() -> None:
    t = torch.ones(2, 3)
    assert t.sum(-1).tolist() == [3, 3] and t.sum([0, 1]).item() == t.sum(()).item() == 6
    assert torch.tensor(5.0).sum(0).item() == torch.tensor(5.0).sum(-1).item() == 5
    with pytest.raises(IndexError, match=r"Dimension out of range \(expected to be in range of \[-2, 1\], but got 2\)"):
        t.sum(2)
    with pytest.raises(RuntimeError, match=r"dim 0 appears multiple times in the list of dims"):
        t.sum((0, -2))
    with pytest.raises(NotImplementedError, match=r"mean\(\): could not infer output dtype.* Got: Long"):
        torch.ones(2, dtype=torch.int64).mean()
    with pytest.raises(NotImplementedError, match=r"std only support floating point"):
        torch.ones(2, dtype=torch.int64).std()


@pytest.mark.parametrize("correction", [0, 1, 2])
def test_variances(correction: int) -> None:
    t = some((3, 5), "float64")
    for dims in every_dims(t.shape):
        want = []
        for line in map(list, lines(t, dims)):
            centre = sum(map(Fraction, line)) / len(line)
            want.append(float(sum((Fraction(v) - centre) ** 2 for v in line) / (len(line) - correction)))
        assert_near(t.var(dims, correction=correction), want, 32)
        assert_near(t.std(dims, correction=correction), [math.sqrt(v) for v in want], 32)
    assert t.var(unbiased=False).item() == t.var(correction=0).item() == t.var(False).item()


# -- extremes


@pytest.mark.parametrize("kind", [n for n in REAL if "float8" not in n and n != "bool"])
def test_extremes(kind: str) -> None:
    t = some((3, 4, 2), kind)
    for dim in range(3):
        for name, choose in (("max", max), ("min", min)):
            values, where = getattr(t, name)(dim)
            want = [choose(line) for line in lines(t, [dim])]
            assert values.dtype is t.dtype and numbers(values) == want
            assert numbers(where) == [line.index(w) for line, w in zip(lines(t, [dim]), want, strict=True)]
            assert numbers(getattr(t, f"arg{name}")(dim)) == numbers(where) == numbers(getattr(torch, name)(t, dim)[1])
            assert numbers(getattr(t, f"a{name}")(dim)) == want
            assert getattr(t, name)(dim, keepdim=True).indices.shape == tuple(
                1 if a == dim else n for a, n in enumerate(t.shape)
            )
    assert t.max().item() == max(numbers(t)) and t.argmin().item() == numbers(t).index(min(numbers(t)))
    assert numbers(t.amax((0, 2))) == [max(line) for line in lines(t, [0, 2])]


def test_nan_is_extreme() -> None:
    t = torch.tensor([[1.0, math.nan, 3.0], [0.0, -1.0, math.inf]])
    assert math.isnan(t.max()) and math.isnan(t.min()) and t.argmax().item() == t.argmin().item() == 1
    assert t.max(1).indices.tolist() == [1, 2] and t.min(1).indices.tolist() == [1, 1]
    assert t[1].max().item() == math.inf
    with pytest.raises(NotImplementedError, match=r"not implemented for 'Bool'"):
        torch.tensor([True]).argmax()


def test_max_of_two_tensors() -> None:
    x, y = torch.tensor([1, 5]), torch.tensor([3, 2])
    assert torch.max(x, y).tolist() == x.max(other=y).tolist() == [3, 5] and torch.min(x, y).tolist() == [1, 2]
    assert repr(x.cpu().max(0)) == "torch.return_types.max(\nvalues=tensor(5),\nindices=tensor(1))"


# -- truth


def test_all_and_any() -> None:
    t = torch.tensor([[True, False], [True, True]])
    assert t.all(1).tolist() == [False, True] and t.any(0).tolist() == [True, True] and not t.all().item()
    assert (
        torch.tensor([0.0, math.nan]).any().item()
        and torch.tensor([2, 1], dtype=torch.uint8).all().dtype is torch.uint8
    )
    assert torch.tensor([0.0, -0.0], dtype=torch.bfloat16).any().item() is False


# -- norms and exponentials


@pytest.mark.parametrize("p", [0, 1, 2, 3.5, math.inf, -math.inf, "fro"])
def test_norms(p: Any) -> None:
    t = some((3, 4), "float64")
    oracle: dict[Any, Callable[[list[float]], float]] = {
        0: lambda line: float(sum(v != 0 for v in line)),
        math.inf: lambda line: max(map(abs, line)),
        -math.inf: lambda line: min(map(abs, line)),
    }
    power = 2 if p == "fro" else p
    norm = oracle.get(p, lambda line: math.fsum(abs(v) ** power for v in line) ** (1 / power))
    assert_near(t.norm(p), [norm(numbers(t))], 16)
    assert_near(t.norm(p, dim=1), [norm(line) for line in lines(t, [1])], 16)
    assert_near(torch.norm(t, p, 0, keepdim=True), [norm(line) for line in lines(t, [0])], 16)
    with pytest.raises(NotImplementedError, match=r"Expected a floating point or complex tensor as input. Got Long"):
        torch.ones(2, dtype=torch.int64).norm(p)


@pytest.mark.parametrize("kind", FLOATS)
def test_softmax_and_its_logarithm(kind: str) -> None:
    t = some((3, 5), kind) * 20
    for dim in (0, 1, -1):
        got, logs, total = t.softmax(dim), t.log_softmax(dim), t.logsumexp(dim)
        for i, line in enumerate(lines(t, [dim % 2])):
            top = max(line)
            e = [math.exp(v - top) for v in line]
            index = (i, slice(None)) if dim % 2 else (slice(None), i)
            assert_near(got[index], [v / math.fsum(e) for v in e], 64)
            assert_near(total[i], [top + math.log(math.fsum(e))], 16)
            want = [v - top - math.log(math.fsum(e)) for v in line]
            assert all(abs(a - b) <= 16 * ULP[kind] * 40 for a, b in zip(numbers(logs[index]), want, strict=True))
    assert torch.tensor([1e4, 1e4]).softmax(0).tolist() == [0.5, 0.5]
    assert torch.tensor([-math.inf, 0.0]).softmax(0).tolist() == [0, 1]
    assert torch.tensor([1, 2]).softmax(0, dtype=torch.float64).dtype is torch.float64
    with pytest.raises(NotImplementedError, match=r"not implemented for 'Long'"):
        torch.tensor([1, 2]).softmax(0)


# -- scans


def test_scans() -> None:
    t = some((3, 4), "int32")
    for dim in (0, 1):
        got = t.cumsum(dim)
        assert got.dtype is torch.int64
        for line, row in zip(lines(t, [dim]), (got if dim else got.t()).tolist(), strict=True):
            assert row == list(itertools.accumulate(line))


# -- sorting


@pytest.mark.parametrize("kind", [n for n in REAL if "float8" not in n])
@pytest.mark.parametrize("descending", [False, True])
def test_sorting_keeps_the_order_of_equals(kind: str, descending: bool) -> None:
    t = some((4, 9), kind)
    for dim in (0, 1):
        values, where = t.sort(dim, descending)
        assert torch.equal(t.gather(dim, where), values) and torch.equal(t.argsort(dim, descending), where)
        for line, order in zip(lines(t, [dim]), (where if dim else where.t()).tolist(), strict=True):
            assert order == sorted(range(len(line)), key=lambda i: -line[i] if descending else line[i])


def test_sorting_puts_nan_at_the_end() -> None:
    t = torch.tensor([2.0, math.nan, -math.inf, 1.0, math.nan])
    assert t.argsort().tolist() == [2, 3, 0, 1, 4] and t.argsort(descending=True).tolist() == [1, 4, 0, 3, 2]


def test_sets_of_values() -> None:
    values = [3, 1, 1, 2, 3, 3]
    t = torch.tensor(values)
    distinct, inverse, counts = t.unique(return_inverse=True, return_counts=True)
    assert distinct.tolist() == sorted(set(values)) and counts.tolist() == [
        values.count(v) for v in sorted(set(values))
    ]
    assert [distinct.tolist()[i] for i in inverse.tolist()] == values
    rows = torch.tensor([[2, 1], [0, 5], [2, 1]])
    assert rows.unique(dim=0).tolist() == [[0, 5], [2, 1]] and rows.unique(return_inverse=True)[1].shape == (3, 2)
    assert torch.tensor([1.5, 1.5], dtype=torch.bfloat16).unique().tolist() == [1.5]


def test_counting() -> None:
    t = torch.tensor([1, 1, 3, 0])
    assert t.bincount().tolist() == [1, 2, 0, 1] and t.bincount(minlength=6).tolist() == [1, 2, 0, 1, 0, 0]
    assert t.bincount(torch.tensor([0.5, 1.0, 2.0, 4.0])).tolist() == [4.0, 1.5, 0.0, 2.0]
    assert torch.zeros(0, dtype=torch.int64).bincount().shape == (0,)
    for wrong in (torch.tensor([-1]), torch.tensor([[1]]), torch.tensor([1.0])):
        with pytest.raises(RuntimeError, match=r"bincount only supports 1-d non-negative integral inputs"):
            wrong.bincount()
