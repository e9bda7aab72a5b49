"""The derivatives of reductions, products, and what is calculated along a dimension, by finite differences."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from conftest import OpenWorld
from gradients import check

import torchemu as torch


@pytest.fixture(autouse=True)
def world(open_world: OpenWorld) -> torch.World:
    return open_world()


def normal(*shape: int, seed: int = 1) -> np.ndarray:
    return np.asarray(np.random.default_rng(seed).normal(size=shape))


REDUCTIONS = ["sum", "mean", "var", "std", "amax", "amin", "max", "min", "norm"]


@pytest.mark.parametrize("shape", [(2, 3), (5,), (3, 1, 2)], ids=str)
@pytest.mark.parametrize("name", REDUCTIONS)
def test_of_all_elements(name: str, shape: tuple[int, ...]) -> None:
    check(getattr(torch, name), normal(*shape))


@pytest.mark.parametrize("name", ["sum", "mean", "amax", "max", "norm"])
def test_of_one_element(name: str) -> None:
    check(getattr(torch, name), normal(1))
    check(getattr(torch, name), normal())


@pytest.mark.parametrize("keepdim", [False, True])
@pytest.mark.parametrize("dim", [0, -1, (0, 2), (1,), None], ids=str)
@pytest.mark.parametrize("name", ["sum", "mean", "var", "std", "amax", "amin", "logsumexp"])
def test_over_dimensions(name: str, dim: Any, keepdim: bool) -> None:
    if dim is None and name == "logsumexp":
        dim = (0, 1, 2)
    check(lambda x: getattr(torch, name)(x, dim=dim, keepdim=keepdim), normal(2, 3, 2))


@pytest.mark.parametrize("keepdim", [False, True])
@pytest.mark.parametrize("dim", [0, -1])
@pytest.mark.parametrize("name", ["max", "min"])
def test_over_one_dimension(name: str, dim: int, keepdim: bool) -> None:
    check(lambda x: getattr(torch, name)(x, dim, keepdim), normal(3, 2, 3))


def test_of_nothing() -> None:
    for fn in (torch.sum, lambda x: x.sum(1), lambda x: x.mean(1), lambda x: x.cumsum(0), lambda x: x.softmax(0)):
        check(fn, normal(0, 3))


def test_equal_largest_elements_share_the_gradient() -> None:
    x = torch.tensor([[1.0, 3.0, 3.0], [2.0, 2.0, 2.0]], requires_grad=True)
    x.amax(1).sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), [[0, 0.5, 0.5], [1 / 3] * 3], rtol=1e-6)
    y = torch.tensor([[1.0, 3.0, 3.0]], requires_grad=True)
    y.max(1)[0].sum().backward()
    assert y.grad.tolist() == [[0, 1, 0]]


VARIANCES: dict[str, Callable[..., Any]] = {
    "correction 0": lambda x: x.var(0, correction=0),
}


@pytest.mark.parametrize("name", VARIANCES)
def test_variances(name: str) -> None:
    check(VARIANCES[name], normal(3, 4))


def test_the_standard_deviation_of_equal_elements_has_no_gradient() -> None:
    x = torch.ones(3, requires_grad=True)
    x.std().backward()
    assert x.grad.tolist() == [0, 0, 0]


@pytest.mark.parametrize("p", [0, 0.5, 1, 1.5, 2, 3, math.inf, -math.inf])
def test_norms(p: float) -> None:
    check(lambda x: torch.norm(x, p, 1), normal(2, 3))


def test_the_norm_of_zeros_has_no_gradient() -> None:
    for p in (1, 1.5, 2, 3):
        x = torch.zeros(3, requires_grad=True)
        x.norm(p).backward()
        assert x.grad.tolist() == [0, 0, 0], p


ALONG: dict[str, Callable[..., Any]] = {
    "softmax": lambda x: x.softmax(-1),
    "softmax of the first": lambda x: x.softmax(0),
    "log_softmax": lambda x: x.log_softmax(1),
    "cumsum": lambda x: x.cumsum(1),
    "sort": lambda x: torch.sort(x, 0, descending=True),
}


@pytest.mark.parametrize("name", ALONG)
def test_along_a_dimension(name: str) -> None:
    check(ALONG[name], normal(3, 4, 2))


def test_along_no_dimension() -> None:
    for fn in (lambda x: x.softmax(0), lambda x: x.log_softmax(0), lambda x: x.cumsum(0)):
        check(fn, normal())


def test_softmax_of_masked_scores() -> None:
    """Elements of -inf have neither probability nor gradient."""
    x = torch.tensor([[0.3, -math.inf, 1.0]], dtype=torch.float64, requires_grad=True)
    (x.softmax(1) * torch.tensor([[1.0, 2.0, 3.0]])).sum().backward()
    p = math.exp(0.3) / (math.exp(0.3) + math.e)
    np.testing.assert_allclose(x.grad.numpy(), [[-2 * p * (1 - p), 0, 2 * p * (1 - p)]], rtol=1e-12)


def test_cross_entropy_is_probabilities_less_one_hot() -> None:
    x = torch.from_numpy(normal(4, 5)).requires_grad_()
    target = torch.tensor([0, 4, 2, 2])
    (-x.log_softmax(1).gather(1, target[:, None]).mean()).backward()
    e = np.exp(normal(4, 5))
    want = (e / e.sum(1, keepdims=True) - np.eye(5)[[0, 4, 2, 2]]) / 4
    np.testing.assert_allclose(x.grad.numpy(), want, rtol=1e-12)


# -- products

MATMULS = [
    ((2, 3), (3, 4)),
    ((3,), (3, 4)),
    ((2, 3), (3,)),
    ((3,), (3,)),
    ((5, 2, 3), (3, 4)),
    ((5, 2, 3), (3,)),
    ((3,), (5, 3, 4)),
    ((5, 2, 3), (5, 3, 4)),
    ((1, 2, 3), (5, 3, 4)),
    ((2, 1, 2, 3), (3, 3, 2)),
    ((0, 3), (3, 4)),
    ((2, 0), (0, 4)),
    ((1, 1), (1, 1)),
]


@pytest.mark.parametrize("shapes", MATMULS, ids=str)
def test_matmul(shapes: tuple[tuple[int, ...], tuple[int, ...]]) -> None:
    check(torch.matmul, normal(*shapes[0]), normal(*shapes[1], seed=2))


PRODUCTS: dict[str, tuple[Any, ...]] = {
    "mm": (torch.mm, (2, 3), (3, 4)),
    "bmm": (torch.bmm, (5, 2, 3), (5, 3, 4)),
    "mv": (torch.mv, (2, 3), (3,)),
    "dot": (torch.dot, (3,), (3,)),
    "outer": (torch.outer, (3,), (2,)),
}


@pytest.mark.parametrize("name", PRODUCTS)
def test_products(name: str) -> None:
    fn, *shapes = PRODUCTS[name]
    check(fn, *[normal(*shape, seed=i) for i, shape in enumerate(shapes)])


EQUATIONS = {
    "ij,jk->ik": [(2, 3), (3, 4)],
    "ij,jk": [(2, 3), (3, 4)],
    "bij,bjk->bik": [(2, 2, 3), (2, 3, 4)],
    "ij->j": [(2, 3)],
    "ij->": [(2, 3)],
    "ij,i->ij": [(2, 3), (2,)],
    "i,j->ij": [(2,), (3,)],
    "bhqd,bhkd->bhqk": [(1, 2, 3, 2), (1, 2, 4, 2)],
    "ij,jk,k->i": [(2, 3), (3, 4), (4,)],
    "ij,kl->il": [(2, 3), (2, 3)],
}


@pytest.mark.parametrize("equation", EQUATIONS)
def test_einsum(equation: str) -> None:
    shapes = EQUATIONS[equation]
    check(lambda *a: torch.einsum(equation, *a), *[normal(*shape, seed=i) for i, shape in enumerate(shapes)])


@pytest.mark.parametrize(("equation", "shape"), [("ii->i", (3, 3)), ("...i->...", (2, 3))])
def test_einsums_without_derivative_say_so(equation: str, shape: tuple[int, ...]) -> None:
    x = torch.ones(shape, requires_grad=True)
    with pytest.raises(NotImplementedError, match="derivative for einsum is not implemented"):
        torch.einsum(equation, x).sum().backward()


def test_of_a_product_only_the_gradients_that_are_needed_are_calculated() -> None:
    """The other one, of a huge operand, would not be affordable."""
    a, b = torch.ones(2, 3, requires_grad=True), torch.ones(3, 4)
    node = (a @ b).grad_fn
    (first, second) = node.next_functions
    assert first[0] is not None and second[0] is None


@pytest.mark.parametrize("name", ["bfloat16", "float16"])
def test_gradients_of_products_of_short_floats_are_rounded_once(name: str) -> None:
    kind = getattr(torch, name)
    x, w = (torch.from_numpy(normal(*shape)).to(kind) for shape in ((3, 64), (64, 2)))
    x.requires_grad_()
    (x @ w).backward(torch.ones(3, 2, dtype=kind))
    exact = w.float().numpy().sum(1)
    assert x.grad.dtype is kind
    assert x.grad.tolist() == torch.from_numpy(np.tile(exact, (3, 1))).to(kind).tolist()
