"""Products of matrices, and tensors put together: against loops."""

from __future__ import annotations

import math
import random
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from conftest import OpenWorld
from tensor_oracle import FLOATS, INTEGERS, ULP, indices, numbers, tensor, wrapped

import torchemu as torch

Tensor = torch.Tensor


@pytest.fixture(autouse=True)
def world(open_world: OpenWorld) -> torch.World:
    return open_world()


def some(shape: tuple[int, ...], kind: str = "float64", seed: Any = 0) -> Tensor:
    rng = random.Random(f"{shape} {kind} {seed}")
    draw = (lambda: rng.uniform(-2, 2)) if "float" in kind else (lambda: rng.randint(0, 9))
    return tensor([draw() for _ in range(math.prod(shape))], kind).reshape(shape)


def exact(equation: str, *operands: Tensor) -> tuple[tuple[int, ...], list[Fraction], float]:
    """An einsum by its definition: the shape, the exact elements and how large the sums' parts are."""
    terms, result = equation.split("->")
    sizes: dict[str, int] = {}
    arrays = [np.asarray(t).astype(float if t.dtype.is_floating_point else object) for t in operands]
    for term, array in zip(terms.split(","), arrays, strict=True):
        sizes.update(zip(term, array.shape, strict=True))
    inner = [c for c in sizes if c not in result]
    values, size = [], 0.0
    for outer in indices([sizes[c] for c in result]):
        total, parts = Fraction(), 0.0
        for rest in indices([sizes[c] for c in inner]):
            at = dict(zip([*result, *inner], [*outer, *rest], strict=True))
            part = Fraction(1)
            for term, array in zip(terms.split(","), arrays, strict=True):
                part *= Fraction(array[tuple(at[c] for c in term)])
            total, parts = total + part, parts + abs(float(part))
        values.append(total)
        size = max(size, parts)
    return tuple(sizes[c] for c in result), values, size


def check(got: Tensor, equation: str, *operands: Tensor) -> None:
    shape, want, size = exact(equation, *operands)
    assert got.shape == shape and got.dtype is operands[0].dtype
    name = got.dtype.name
    if name not in FLOATS:
        assert numbers(got) == [wrapped(int(w), name) for w in want]
        return
    # the sum is in float32, or float64, and then rounded once
    slack = size * (2.0**-49 if name == "float64" else 2.0**-19)
    for a, b in zip(numbers(got), want, strict=True):
        assert abs(a - float(b)) <= slack + 0.5 * ULP[name] * abs(float(b)) * 1.001


@pytest.mark.parametrize("kind", [*FLOATS, *INTEGERS])
def test_matrix_products(kind: str) -> None:
    a, b, v, w = some((3, 5), kind), some((5, 4), kind), some((5,), kind), some((3,), kind)
    for product in (
        a @ b,
        torch.mm(a, b),
        torch.matmul(a, b),
        a.mm(b),
        torch.mm(a, b, out=torch.zeros(3, 4, dtype=a.dtype)),
    ):
        check(product, "ij,jk->ik", a, b)
    check(a.t().contiguous().t() @ b, "ij,jk->ik", a, b)
    check(a @ v, "ij,j->i", a, v)
    check(torch.mv(a, v), "ij,j->i", a, v)
    check(w @ a, "i,ij->j", w, a)
    check(torch.dot(v, v), "i,i->", v, v)
    check(torch.outer(v, w), "i,j->ij", v, w)


@pytest.mark.parametrize("kind", ["float64", "float16", "int32"])
def test_stacks_of_matrices(kind: str) -> None:
    a, b, c = some((2, 3, 4), kind), some((2, 4, 5), kind), some((4, 5), kind)
    check(torch.bmm(a, b), "bij,bjk->bik", a, b)
    check(a @ c, "bij,jk->bik", a, c)
    check(a @ some((4,), kind), "bij,j->bi", a, some((4,), kind))
    x, y = some((3, 1, 2, 4), kind), some((2, 4, 2), kind)
    check(x @ y, "aij,bjk->abik", x[:, 0], y)


def test_products_of_short_floats_are_summed_in_float32() -> None:
    """1 + 2⁻¹⁰ + 2⁻¹⁰ is lost in float16 if each partial sum is rounded."""
    for kind, tiny in ((torch.float16, 2.0**-11), (torch.bfloat16, 2.0**-8)):
        row = torch.tensor([[1.0, *[tiny] * 4]], dtype=kind)
        ones = torch.ones(5, 1, dtype=kind)
        want = torch.tensor(1 + 4 * tiny).to(kind).item()
        assert (row @ ones).item() == torch.einsum("ij,jk->ik", row, ones).item() == want != 1


def test_products_of_nothing() -> None:
    assert (torch.zeros(2, 0) @ torch.zeros(0, 3)).tolist() == [[0] * 3] * 2
    assert (torch.zeros(0, 2) @ torch.zeros(2, 3)).shape == (0, 3)
    assert torch.dot(torch.zeros(0), torch.zeros(0)).item() == 0


EQUATIONS = [
    "ij,jk->ik",
    "ij->ji",
    "ij->i",
    "ij->",
    "ij,ij->ij",
    "i,j->ij",
    "bij,bjk->bik",
    "ij,jk,kl->il",
    "ii->i",
    "bi,bi->b",
]


@pytest.mark.parametrize("equation", EQUATIONS)
def test_einsum(equation: str) -> None:
    sizes = dict(zip("bijkl", (2, 3, 4, 5, 2), strict=True))
    operands = [
        some(tuple(sizes[c] for c in term), seed=i) for i, term in enumerate(equation.split("->")[0].split(","))
    ]
    check(torch.einsum(equation, *operands), equation, *operands)
    check(torch.einsum(equation, operands), equation, *operands)


def test_einsum_in_other_forms() -> None:
    a, b, x = some((3, 4)), some((4, 5)), some((2, 3, 4))
    assert torch.equal(torch.einsum("ij,jk", a, b), torch.einsum("ij,jk->ik", a, b))
    assert torch.allclose(torch.einsum("...ij,jk->...ik", x, b), x @ b)
    for equation, text in [
        ("ij,jk->ik", r"subscript j has size 3 for operand 1 which does not broadcast with previously seen size 4"),
        ("ij->i", r"more operands were provided than specified in the equation"),
        ("ijk,jk->ik", r"does not fit operands of shapes"),
    ]:
        with pytest.raises(RuntimeError, match=text):
            torch.einsum(equation, a, a)


def test_products_that_do_not_fit() -> None:
    a, v = torch.zeros(2, 3), torch.zeros(2)
    cases: list[tuple[Any, type[Exception], str]] = [
        (lambda: torch.mm(a, a), RuntimeError, r"mm: mat1 and mat2 shapes cannot be multiplied \(2x3 and 2x3\)"),
        (lambda: a @ a, RuntimeError, r"mat1 and mat2 shapes cannot be multiplied \(2x3 and 2x3\)"),
        (lambda: a @ v, RuntimeError, r"cannot be multiplied \(2x3 and 2\)"),
        (lambda: v @ torch.zeros(3), RuntimeError, r"inconsistent tensor size, expected tensor \[2\] and src \[3\]"),
        (lambda: torch.mm(a, v), RuntimeError, r"operand 2 must be a 2D tensor, but its shape is \[2\]"),
        (lambda: torch.tensor(1.0) @ a, RuntimeError, r"need to be at least 1D, but they are 0D and 2D"),
        (lambda: a.t() @ a.double(), RuntimeError, r"to have the same dtype, but got: Float != Double"),
        (lambda: a.bool() @ a.t().bool(), NotImplementedError, r"not implemented for 'Bool'"),
        (lambda: torch.bmm(torch.zeros(2, 3, 4), torch.zeros(2, 3, 4)), RuntimeError, r"batch2 tensor to be: \[2, 4\]"),
        (lambda: torch.zeros(2, 3, 4) @ torch.zeros(3, 4, 5), RuntimeError, r"cannot be broadcast"),
        (lambda: torch.dot(a, v), RuntimeError, r"1D tensors expected, but got 2D and 1D tensors"),
        (lambda: torch.mm(a, 3), TypeError, r"mm\(\): argument 2 must be Tensor, not int"),
        (lambda: a @ 3, TypeError, r"must be Tensor, not int"),
    ]
    for call, kind, text in cases:
        with pytest.raises(kind, match=text):
            call()


# -- put together


@pytest.mark.parametrize("dim", [0, 1, 2, -1])
def test_cat_and_stack(dim: int) -> None:
    base = [2, 3, 4]
    parts = []
    for i, n in enumerate((1, 3, 0, 2)):
        shape = list(base)
        shape[dim] = n
        parts.append(torch.arange(math.prod(shape)).reshape(shape) + 100 * i)
    joined = torch.cat(parts, dim)
    assert [p.tolist() for p in joined.split([p.shape[dim] for p in parts], dim)] == [p.tolist() for p in parts]
    twice = torch.stack([parts[1], parts[1] + 1], dim)
    assert [p.tolist() for p in twice.unbind(dim)] == [parts[1].tolist(), (parts[1] + 1).tolist()]


def test_what_cannot_be_joined() -> None:
    v, m = torch.tensor([1, 2]), torch.tensor([[3, 4]])
    assert torch.cat([v, torch.tensor([])]).tolist() == [1, 2]  # an empty vector counts for nothing
    for call, kind, text in [
        (lambda: torch.cat([]), ValueError, r"expected a non-empty list of Tensors"),
        (lambda: torch.cat(v), TypeError, r"must be tuple of Tensors, not Tensor"),
        (lambda: torch.cat([v, 1]), TypeError, r"expected Tensor as element 1 in argument 0, but got int"),
        (
            lambda: torch.cat([m, torch.ones(1, 3), torch.ones(2, 2)], 1),
            RuntimeError,
            r"Expected size 1 but got size 2 for tensor number 2",
        ),
        (lambda: torch.cat([v, m]), RuntimeError, r"must have same number of dimensions: got 1 and 2"),
        (lambda: torch.cat([torch.tensor(1)]), RuntimeError, r"zero-dimensional tensor \(at position 0\)"),
        (lambda: torch.stack([v, m]), RuntimeError, r"equal size, but got \[2\] at entry 0 and \[1, 2\] at entry 1"),
    ]:
        with pytest.raises(kind, match=text):
            call()


def test_repeats() -> None:
    v, m = torch.tensor([1, 2]), torch.tensor([[1, 2], [3, 4]])
    assert v.repeat(2, 3).tolist() == [[1, 2] * 3] * 2 and m.repeat(2, 1).tolist() == [[1, 2], [3, 4]] * 2
    with pytest.raises(RuntimeError, match=r"can not be smaller than number of dimensions of tensor"):
        m.repeat(2)
