"""The derivatives of operations on single elements, compared with finite differences."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from conftest import OpenWorld
from gradients import check

import torchemu as torch
from torchemu.frontends.numpy._autograd.derivative import EVERYTHING, Derivative, Joint, Partial
from torchemu.frontends.numpy._tensor.dispatch import Op, _op, _op_several
from torchemu.nn import functional


@pytest.fixture(autouse=True)
def world(open_world: OpenWorld) -> torch.World:
    return open_world()


SHAPES = [(2, 3), (1,), (), (0, 3), (3, 1, 2)]
BROADCAST = [((2, 3), (3,)), ((2, 1), (1, 3)), ((), (2, 2)), ((0, 3), (3,)), ((1,), (1,)), ((5,), (5,))]


def normal(*shape: int, seed: int = 1) -> np.ndarray:
    """Numbers of both signs, none of which is next to a place where an operation jumps."""
    return np.asarray(np.random.default_rng(seed).normal(size=shape))


def between(low: float, high: float, *shape: int, seed: int = 1) -> np.ndarray:
    """Numbers of an interval."""
    return np.asarray(np.random.default_rng(seed).uniform(low, high, size=shape))


ANYWHERE = "abs ceil cos erf exp expm1 floor neg relu round sigmoid sign sin square tanh trunc"
BETWEEN_0_AND_1 = "log log1p log2 reciprocal rsqrt sqrt"


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("name", ANYWHERE.split())
def test_one_operand(name: str, shape: tuple[int, ...]) -> None:
    check(getattr(torch, name), normal(*shape))


@pytest.mark.parametrize("name", BETWEEN_0_AND_1.split())
def test_one_operand_of_an_interval(name: str) -> None:
    check(getattr(torch, name), between(0.2, 0.9, 2, 3))


@pytest.mark.parametrize("approximate", ["none", "tanh"])
def test_gelu(approximate: str) -> None:
    check(lambda x: functional.gelu(x, approximate), 3 * normal(7))


ACTIVATIONS: dict[str, Callable[..., Any]] = {
    "silu": functional.silu,
    "round": lambda x: torch.round(x, decimals=1),
}


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activations(name: str) -> None:
    check(ACTIVATIONS[name], 2 * normal(9) + 0.003)


TWO = "add sub mul div maximum minimum"


@pytest.mark.parametrize("shapes", BROADCAST, ids=str)
@pytest.mark.parametrize("name", TWO.split())
def test_two_operands(name: str, shapes: tuple[tuple[int, ...], tuple[int, ...]]) -> None:
    check(getattr(torch, name), normal(*shapes[0]), normal(*shapes[1], seed=2))


@pytest.mark.parametrize("name", ["remainder", "pow"])
def test_two_operands_of_an_interval(name: str) -> None:
    check(getattr(torch, name), between(1.1, 9.9, 2, 3), between(1.2, 2.9, 3, seed=4))


WITH_NUMBERS: dict[str, Callable[..., Any]] = {
    "both sides": lambda x: 3 * x - x / 2 + 1 - 2 / x + (1 - x) + torch.rsub(x, 2, alpha=3),
    "alpha": lambda x: torch.add(x, x * x, alpha=3) + torch.sub(1, x, alpha=2),
    "power 2": lambda x: x**2,
    "power 0": lambda x: x**0,
    "power -1": lambda x: x**-1,
    "power 1/2": lambda x: x**0.5,
    "2 to the": lambda x: 2.0**x,
    "0 to the": lambda x: 0.0**x,
    "truncated": lambda x: torch.div(x, 0.7, rounding_mode="trunc"),
    "with an integer tensor": lambda x: x * torch.tensor([1, 2, 3]) + torch.tensor(2),
}


@pytest.mark.parametrize("name", WITH_NUMBERS)
def test_numbers_as_operands(name: str) -> None:
    check(WITH_NUMBERS[name], between(1.1, 2.9, 2, 3))


def test_powers_of_zero() -> None:
    x = torch.tensor([0.0, 0.0, 2.0], dtype=torch.float64, requires_grad=True)
    y = torch.tensor([0.0, 2.0, 3.0], dtype=torch.float64, requires_grad=True)
    torch.pow(x, y).sum().backward()
    assert x.grad.tolist() == [0, 0, 12]
    assert y.grad.tolist() == [0, 0, 8 * np.log(2)]


def test_equal_operands_share_the_gradient() -> None:
    a = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
    b = torch.tensor([1.0, 3.0, 2.0], requires_grad=True)
    torch.maximum(a, b).sum().backward()
    assert (a.grad.tolist(), b.grad.tolist()) == ([0.5, 0, 1], [0.5, 1, 0])


CLAMPS: dict[str, tuple[Any, ...]] = {
    "numbers": (lambda x: x.clamp(-0.5, 0.5), normal(9)),
    "below": (lambda x: x.clamp(min=0.1), normal(9)),
    "above": (lambda x: x.clamp(max=0.1), normal(9)),
    "tensors": (torch.clamp, normal(9), normal(9, seed=2) - 1, normal(9, seed=3) + 1),
    "a tensor below": (lambda x, low: torch.clamp(x, min=low), normal(2, 5), normal(5, seed=2)),
    "a tensor above": (lambda x, high: torch.clamp(x, max=high), normal(2, 5), normal(5, seed=2)),
}


@pytest.mark.parametrize("name", CLAMPS)
def test_clamp(name: str) -> None:
    check(*CLAMPS[name])


def test_a_clamped_element_on_the_bound_has_its_gradient() -> None:
    x = torch.tensor([-1.0, 0.0, 1.0, 2.0], requires_grad=True)
    x.clamp(0, 1).sum().backward()
    assert x.grad.tolist() == [0, 1, 1, 0]


def chosen() -> torch.Tensor:
    return torch.tensor([True, False, True])


THREE: dict[str, Callable[..., Any]] = {
    "where": lambda a, b, c: torch.where(chosen(), a, b) * c,
    "where with numbers": lambda a, b, c: torch.where(chosen(), a, 2.0) + torch.where(chosen(), 3, b) + c,
    "masked_fill": lambda a, b, c: a.masked_fill(chosen(), 3.0) + b.masked_fill(chosen(), c[0, 0]),
}


@pytest.mark.parametrize("name", THREE)
def test_three_operands(name: str) -> None:
    check(THREE[name], normal(2, 3), normal(3, seed=2), between(1, 2, 2, 1))


def test_relu_has_no_gradient_at_zero_and_below() -> None:
    x = torch.tensor([-1.0, 0.0, 2.0, float("nan")], requires_grad=True)
    torch.relu(x).sum().backward()
    assert x.grad.tolist()[:3] == [0, 0, 1]


@pytest.mark.parametrize("name", ["float16", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_relu_hands_on_gradients_bit_by_bit_or_nothing(name: str, order: tuple[int, int]) -> None:
    numbers = torch.tensor([-np.inf, -2.0, -0.0, 0.0, 1e-7, 3.0, np.inf, np.nan], dtype=name)
    x = torch.stack([numbers] * 8).permute(order).requires_grad_()
    grad = torch.stack([numbers] * 8).permute(order[::-1])
    x.relu().backward(grad)
    assert x.grad is not None
    want = torch.zeros(8, 8, dtype=name)
    for i, j in np.argwhere(np.maximum(x.detach().float().numpy(), 0) > 0):
        want[i, j] = grad[i, j]
    bits = {2: torch.int16, 4: torch.int32, 8: torch.int64}[want.itemsize]
    assert x.grad.contiguous().view(bits).tolist() == want.view(bits).tolist()


def test_tails_of_activations_stay_finite() -> None:
    for fn in (functional.gelu, functional.silu, torch.sigmoid, torch.tanh):
        x = torch.tensor([-100.0, -20.0, 20.0, 100.0], requires_grad=True)
        fn(x).sum().backward()
        assert torch.isfinite(x.grad).all(), fn


@pytest.mark.parametrize("name", ["bfloat16", "float16", "float32"])
def test_gradients_have_the_operands_dtypes(name: str) -> None:
    kind = getattr(torch, name)
    x = torch.tensor([1.5, -2.0], dtype=kind, requires_grad=True)
    w = torch.tensor([3.0, 4.0], dtype=torch.float64, requires_grad=True)
    (x * w + torch.tanh(x)).sum().backward()
    assert (x.grad.dtype, w.grad.dtype) == (kind, torch.float64)
    assert w.grad.tolist() == [1.5, -2.0]
    exact = np.array([3.0, 4.0]) + 1 - np.tanh([1.5, -2.0]) ** 2
    np.testing.assert_allclose(x.grad.float().numpy(), exact, rtol={"bfloat16": 0.01, "float16": 2e-3}.get(name, 1e-6))


def test_of_integers_and_comparisons_there_is_no_gradient() -> None:
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    for t in (x == 1, x.argmax(), x.int(), x.isnan(), x.long() * 2, torch.sign(x.int())):
        assert not t.requires_grad and t.grad_fn is None


@pytest.mark.parametrize("name", ["floor_divide"])
def test_an_operation_without_derivative_says_so_when_it_is_needed(name: str) -> None:
    x = torch.tensor([1.5], requires_grad=True)
    y = getattr(torch, name)(x, x.detach())
    assert y.requires_grad
    with pytest.raises(NotImplementedError, match=f"derivative for {name} is not implemented"):
        y.sum().backward()
    assert x.grad is None


# -- operations that others add

SQUARED_ERROR = Op(
    "squared_error",
    lambda x, y, scale: scale * (x - y) ** 2,
    derivative=Derivative(
        Partial(lambda call, grad: grad * 2 * call.params[0] * (call[0] - call[1]), 0, 1),
        Partial(lambda call, grad: grad * 2 * call.params[0] * (call[1] - call[0]), 0, 1),
    ),
)


def _sum_and_product(call: Any, of_sum: Any, of_product: Any) -> list[Any]:
    zeros = torch.zeros(call.shape(0), dtype=call.about(0).dtype)
    first, second = (zeros if g is None else g for g in (of_sum, of_product))
    return [first + second * call[1], first + second * call[0]]


SUM_AND_PRODUCT = Op("sum_and_product", lambda x, y: (x + y, x * y), derivative=Joint(_sum_and_product, EVERYTHING))


def test_operations_with_derivatives_of_their_own() -> None:
    check(lambda x, y: _op(SQUARED_ERROR, (x, y), 3.0), normal(2, 3), normal(3, seed=2))
    kinds = (torch.float64, torch.float64)
    both = lambda x, y: _op_several(SUM_AND_PRODUCT, (x, y), kinds=kinds)  # noqa: E731
    check(both, normal(4), normal(4, seed=2))
    check(lambda x, y: both(x, y)[1], normal(4), normal(4, seed=2))
    assert _op(SQUARED_ERROR, (torch.ones(2, requires_grad=True), 3.0), 1).grad_fn.name() == "SquaredErrorBackward0"
