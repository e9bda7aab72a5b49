"""Operations on single elements: values, dtypes, broadcasting, refusals."""

from __future__ import annotations

import math
import operator
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from conftest import NUMPY, REAL, OpenWorld
from tensor_oracle import FLOATS, INTEGERS, assert_near, at, broadcast, careful, indices, numbers, tensor, wrapped

import torchemu as torch
from torchemu.nn import functional as F  # noqa: N812 (everybody's name)


@pytest.fixture(autouse=True)
def world(open_world: OpenWorld) -> torch.World:
    return open_world()


SPECIAL = [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.0, -3.0, 0.1, -0.7, 7.25, 1e-3, 12.5, math.inf, -math.inf, math.nan]

inf = math.inf


def _exp(x: float) -> float:
    return inf if x > 709 else math.exp(x)


FUNCTIONS: dict[str, tuple[Callable[[float], float], float]] = {  # name → on one number, and the ulps it may be off
    "abs": (abs, 0),
    "neg": (operator.neg, 0),
    "square": (lambda x: x * x, 0.5),
    "reciprocal": (lambda x: 1 / x if x else math.copysign(inf, x), 0.5),
    "sqrt": (lambda x: math.sqrt(x) if x >= 0 else math.nan, 0.5),
    "rsqrt": (
        lambda x: (
            1 / math.sqrt(x) if x > 0 else inf if x == 0 and math.copysign(1, x) > 0 else -inf if x == 0 else math.nan
        ),
        2,
    ),
    "exp": (_exp, 2),
    "expm1": (lambda x: inf if x > 709 else math.expm1(x), 2),
    "log": (lambda x: math.log(x) if x > 0 else -inf if x == 0 else math.nan, 2),
    "log2": (lambda x: math.log2(x) if x > 0 else -inf if x == 0 else math.nan, 2),
    "log1p": (lambda x: math.log1p(x) if x > -1 else -inf if x == -1 else math.nan, 2),
    "sin": (careful(math.sin), 2),
    "cos": (careful(math.cos), 2),
    "tanh": (math.tanh, 4),
    "sigmoid": (lambda x: 1 / (1 + _exp(-x)), 4),
    "erf": (math.erf, 2),
    "relu": (lambda x: x if x > 0 or math.isnan(x) else 0.0, 0),
    "floor": (lambda x: float(math.floor(x)) if math.isfinite(x) else x, 0),
    "ceil": (lambda x: float(math.ceil(x)) if math.isfinite(x) else x, 0),
    "trunc": (lambda x: float(math.trunc(x)) if math.isfinite(x) else x, 0),
    "sign": (lambda x: 0.0 if math.isnan(x) else float((x > 0) - (x < 0)), 0),
}


@pytest.mark.parametrize("kind", FLOATS)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_of_floats(name: str, kind: str) -> None:
    fn, ulps = FUNCTIONS[name]
    x = tensor(SPECIAL, kind)
    want = [fn(v) for v in numbers(x)]
    got = getattr(torch, name)(x)
    assert got.dtype is x.dtype
    # short floats are calculated in float32 and rounded once
    assert_near(got, want, max(ulps, 0.5) if kind in ("float32", "float64") else 0.51 + ulps * 2.0**-10)
    same_in_place = getattr(x.clone(), name + "_")()
    assert_near(same_in_place, numbers(got), 0)
    assert_near(getattr(torch, name)(x, **({} if name == "round" else {"out": torch.empty_like(x)})), numbers(got), 0)


@pytest.mark.parametrize("name", ["exp", "sqrt", "sin", "sigmoid", "erf", "reciprocal", "log1p"])
@pytest.mark.parametrize("kind", [*INTEGERS, "bool"])
def test_integers_become_floats(name: str, kind: str) -> None:
    x = tensor([0, 1, 3, 7], kind)
    want = [FUNCTIONS[name][0](float(v)) for v in numbers(x)]
    got = getattr(torch, name)(x)
    assert got.dtype is torch.float32
    assert_near(got, want, 4)
    with pytest.raises(RuntimeError, match=r"result type Float can't be cast to the desired output type"):
        getattr(x, name + "_")()


@pytest.mark.parametrize("kind", INTEGERS)
def test_functions_of_integers(kind: str) -> None:
    x = tensor([0, 1, 5, 100, np.iinfo(NUMPY[kind]).max, np.iinfo(NUMPY[kind]).min], kind)
    for name in ("floor", "ceil", "trunc", "round"):
        assert numbers(getattr(torch, name)(x)) == numbers(x)
    assert numbers(-x) == [wrapped(-v, kind) for v in numbers(x)]
    assert numbers(abs(x)) == [wrapped(abs(v), kind) for v in numbers(x)]
    assert numbers(x.square()) == [wrapped(v * v, kind) for v in numbers(x)]
    assert numbers(~x) == [wrapped(~v, kind) for v in numbers(x)]
    assert numbers(x.sign()) == [(v > 0) - (v < 0) for v in numbers(x)]
    assert not (x.isnan() | x.isinf()).any() and x.isfinite().all()


def test_what_is_not_a_number() -> None:
    x = torch.tensor(SPECIAL)
    assert x.isnan().tolist() == [math.isnan(v) for v in SPECIAL]
    assert x.isinf().tolist() == [math.isinf(v) for v in SPECIAL]
    assert x.isfinite().tolist() == [math.isfinite(v) for v in SPECIAL]


def test_gelu_and_silu() -> None:
    x = torch.tensor(SPECIAL[:13], dtype=torch.float64)
    exact = [v * (1 + math.erf(v / math.sqrt(2))) / 2 for v in SPECIAL[:13]]
    by_tanh = [v * (1 + math.tanh(math.sqrt(2 / math.pi) * (v + 0.044715 * v**3))) / 2 for v in SPECIAL[:13]]
    assert_near(F.gelu(x), exact, 64)
    assert_near(F.gelu(x, "tanh"), by_tanh, 64)
    assert_near(F.silu(x), [v / (1 + math.exp(-v)) for v in SPECIAL[:13]], 4)
    with pytest.raises(RuntimeError, match=r"either none or tanh"):
        F.gelu(x, "erf")


def test_erf_is_that_of_libm_over_its_range() -> None:
    x = torch.linspace(-7, 7, 20_001, dtype=torch.float64)
    assert_near(x.erf(), [math.erf(v) for v in numbers(x)], 8)


def test_erf_of_float32_is_the_number_next_to_libms() -> None:
    at = np.arange(-8300, 8301) / 2048  # the places of the table, halfway between them, and next to both
    tiny = np.ldexp(1.0, np.arange(-149, 2))
    x = np.concatenate([at, at + 1 / 4096, np.nextafter(at + 1 / 4096, 9), np.linspace(-4.5, 4.5, 70_001), tiny, -tiny])
    x = np.append(x, [0.0, -0.0, 1e30, math.inf, -math.inf]).astype(np.float32)
    found, exact = torch.tensor(x).erf().numpy(), np.array([math.erf(v) for v in x.astype(float)])
    last_digit = np.spacing(np.abs(exact).astype(np.float32)).astype(float)
    assert np.all(np.abs(found.astype(float) - exact) <= 0.5001 * last_digit)
    assert np.array_equal(np.signbit(found), np.signbit(x))
    assert torch.tensor([1.0, math.nan]).erf().isnan().tolist() == [False, True]
    assert torch.zeros(0, 3).erf().shape == (0, 3)


# -- two operands

ARITHMETIC: dict[str, Callable[[Any, Any], Any]] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "maximum": max,
    "minimum": min,
}


@pytest.mark.parametrize("kind", INTEGERS)
@pytest.mark.parametrize("name", ARITHMETIC)
def test_arithmetic_of_integers_wraps(name: str, kind: str) -> None:
    limits = np.iinfo(NUMPY[kind])
    values = [0, 1, 2, 7, int(limits.max), int(limits.min)]
    x, y = tensor(values, kind), tensor(values[::-1], kind)
    want = [wrapped(ARITHMETIC[name](a, b), kind) for a, b in zip(numbers(x), numbers(y), strict=True)]
    assert numbers(getattr(torch, name)(x, y)) == want
    if name in ("add", "sub", "mul"):
        assert numbers(getattr(x.clone(), name + "_")(y)) == want


@pytest.mark.parametrize("kind", FLOATS)
@pytest.mark.parametrize("name", ["add", "sub", "mul", "div"])
def test_arithmetic_of_floats_rounds_once(name: str, kind: str) -> None:
    rng = random.Random(f"{name} {kind}")
    x, y = (tensor([rng.uniform(-4, 4) for _ in range(200)], kind) for _ in range(2))
    fn = {**ARITHMETIC, "div": operator.truediv}[name]
    want = [fn(a, b) for a, b in zip(numbers(x), numbers(y), strict=True)]
    got = getattr(torch, name)(x, y)
    assert numbers(got) == numbers(tensor(want, kind)), "not the nearest numbers to the exact results"


@pytest.mark.parametrize(
    ("x", "y"),
    [((3, 4), (4,)), ((3, 1), (1, 4)), ((), (2, 3)), ((2, 1, 4), (3, 1)), ((0, 3), (1, 3)), ((1,), (1, 1)), ((), ())],
)
def test_operands_broadcast(x: tuple[int, ...], y: tuple[int, ...]) -> None:
    a = torch.arange(max(math.prod(x), 1)).float()[: math.prod(x)].reshape(x)
    b = torch.arange(max(math.prod(y), 1)).float()[: math.prod(y)].reshape(y) * 0.5 + 1
    shape = broadcast([x, y])
    for name, fn in {"add": operator.add, "mul": operator.mul, "lt": operator.lt, "div": operator.truediv}.items():
        got = getattr(torch, name)(a, b)
        assert got.shape == shape
        want = [fn(at(a, i), at(b, i)) for i in indices(shape)]
        assert (
            numbers(got) == pytest.approx([float(w) for w in want]) if name != "lt" else got.view(-1).tolist() == want
        )
    if shape == x:
        assert numbers(a.clone().add_(b)) == numbers(a + b)


def test_shapes_that_do_not_broadcast() -> None:
    for x, y, text in [
        ((3,), (2,), r"tensor a \(3\) must match the size of tensor b \(2\) at non-singleton dimension 0"),
        ((2, 3), (2, 4), r"tensor a \(3\) must match the size of tensor b \(4\) at non-singleton dimension 1"),
        ((5, 2, 3), (4, 3), r"tensor a \(2\) must match the size of tensor b \(4\) at non-singleton dimension 1"),
    ]:
        for call in (operator.add, operator.eq, torch.maximum, torch.Tensor.add_):
            with pytest.raises(RuntimeError, match=text):
                call(torch.zeros(x), torch.zeros(y))
    with pytest.raises(RuntimeError, match=r"output with shape \[3\] doesn't match the broadcast shape \[2, 3\]"):
        torch.zeros(3).add_(torch.zeros(2, 3))


def test_division_of_integers() -> None:
    values = [(a, b) for a in (-7, -6, -1, 0, 1, 6, 7) for b in (-3, -2, 2, 3)]
    x, y = (torch.tensor(column) for column in zip(*values, strict=True))
    assert (x / y).dtype is torch.float32
    assert (x / y).tolist() == pytest.approx([a / b for a, b in values])
    assert (x // y).tolist() == [a // b for a, b in values]
    assert (x % y).tolist() == [a % b for a, b in values]
    assert torch.div(x, y, rounding_mode="floor").tolist() == [a // b for a, b in values]
    assert torch.div(x, y, rounding_mode="trunc").tolist() == [int(a / b) for a, b in values]
    for call in (operator.floordiv, operator.mod):
        with pytest.raises(RuntimeError, match=r"ZeroDivisionError"):
            call(x, 0)
    with pytest.raises(RuntimeError, match=r"rounding_mode to be one of None, 'trunc', or 'floor' but found 'up'"):
        torch.div(x, y, rounding_mode="up")


def test_division_of_floats() -> None:
    values = [(a, b) for a in (-7.5, -1.0, 0.0, 1.0, 7.5) for b in (-2.0, 0.3, 2.0)]
    x, y = (torch.tensor(column, dtype=torch.float64) for column in zip(*values, strict=True))
    assert (x // y).tolist() == [a // b for a, b in values]
    assert (x % y).tolist() == pytest.approx([a % b for a, b in values])
    assert (torch.tensor([1.0, -1.0, 0.0]) / 0).tolist()[:2] == [inf, -inf]
    assert math.isnan((torch.zeros(1) / 0).item())


def test_powers() -> None:
    base, exponent = torch.tensor([2, 3, -2, 0, 1, -1]), torch.tensor([10, 3, 3, 0, -5, -3])
    assert (base**exponent).tolist() == [1024, 27, -8, 1, 1, -1]
    assert (torch.tensor([2, -3]) ** torch.tensor([-1, -1])).tolist() == [0, 0]
    assert (torch.tensor([1.5, -2.0]) ** 2).tolist() == [2.25, 4.0]
    assert (2 ** torch.tensor([0.5, 3.0])).tolist() == pytest.approx([2**0.5, 8])
    assert (torch.tensor([4]) ** 0.5).tolist() == [2.0]
    assert (torch.tensor([2], dtype=torch.int8) ** 7).tolist() == [-128]
    with pytest.raises(RuntimeError, match=r"Integers to negative integer powers are not allowed"):
        base**-1


def test_bits() -> None:
    pairs = [(0b1100, 0b1010), (-1, 5), (7, 0)]
    x, y = (torch.tensor(c) for c in zip(*pairs, strict=True))
    for call in (operator.and_, operator.or_, operator.xor):
        assert call(x, y).tolist() == [call(a, b) for a, b in pairs]
    assert (x << 2).tolist() == [a << 2 for a, _ in pairs]
    assert (x >> 1).tolist() == [a >> 1 for a, _ in pairs]
    truth = torch.tensor([True, False])
    assert (truth & True).tolist() == [True, False] and (truth ^ True).tolist() == (~truth).tolist() == [False, True]


def test_comparisons_meet_in_a_common_dtype() -> None:
    assert (torch.tensor([1, 2]) < torch.tensor([1.5, 1.5])).tolist() == [True, False]
    assert (torch.tensor([200], dtype=torch.uint8) == 200).item()
    assert (torch.tensor([255], dtype=torch.uint8) == -1).item()  # of a number only the bits of the dtype count
    assert (torch.tensor([math.nan]) == torch.tensor([math.nan])).tolist() == [False]
    for call in (operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne):
        for kind in REAL:
            if not kind.startswith("float8"):
                x, y = tensor([0, 1, 1], kind), tensor([1, 1, 0], kind)
                assert call(x, y).tolist() == [call(a, b) for a, b in [(0, 1), (1, 1), (1, 0)]]


def test_logic() -> None:
    x, y = torch.tensor([0.0, 2.0, 0.0, math.nan]), torch.tensor([0, 1, 5, 0])
    assert torch.logical_and(x, y).tolist() == [False, True, False, False]
    assert torch.logical_or(x, y).tolist() == [False, True, True, True]
    assert torch.logical_xor(x, y).tolist() == [False, False, True, True]
    assert torch.logical_not(x).tolist() == [True, False, True, False]


def test_scaled_second_operand() -> None:
    x, y = torch.tensor([1, 2]), torch.tensor([10, 20])
    assert torch.add(x, y, alpha=3).tolist() == [31, 62]
    assert torch.sub(x, y, alpha=2).tolist() == [-19, -38]
    assert x.clone().add_(y, alpha=-1).tolist() == [-9, -18]
    assert torch.rsub(x, y).tolist() == [9, 18]
    with pytest.raises(RuntimeError, match=r"integral input tensors, argument alpha must not be a floating point"):
        torch.add(x, y, alpha=1.5)
    with pytest.raises(RuntimeError, match=r"Boolean alpha only supported for Boolean results"):
        torch.add(x, y, alpha=True)


def test_three_operands() -> None:
    x = torch.tensor([-2.0, 0.3, math.nan, 9.0])
    assert x.clamp(0, 1).tolist()[:2] == [0, pytest.approx(0.3)] and math.isnan(x.clamp(0, 1)[2])
    assert x.clamp(min=torch.tensor(0.0)).tolist()[3] == 9
    assert torch.clamp(torch.tensor([1, 5, 9]), 2, 6).tolist() == [2, 5, 6]
    assert torch.clamp(torch.tensor([1, 2]), max=1.5).tolist() == [1.0, 1.5]
    with pytest.raises(RuntimeError, match=r"At least one of 'min' or 'max' must not be None"):
        x.clamp()
    mask = torch.tensor([[True, False]])
    assert torch.where(mask, torch.tensor([[1], [2]]), 0.5).tolist() == [[1, 0.5], [2, 0.5]]
    assert torch.where(mask, 1, 2).dtype is torch.int64
    with pytest.raises(
        RuntimeError, match=r"expected condition to be a boolean tensor, but got a tensor with dtype Long"
    ):
        torch.where(torch.tensor([1]), 1, 2)


# -- refusals


def test_refusals() -> None:
    truth, whole, real = torch.tensor([True]), torch.tensor([1]), torch.tensor([1.0])
    short = torch.ones(1).to(torch.float8_e5m2)
    cases: list[tuple[Any, type[Exception], str]] = [
        (lambda: truth - truth, NotImplementedError, r"with two bool tensors is not supported. Use the `\^`"),
        (lambda: truth - 1, NotImplementedError, r"with a bool tensor is not supported"),
        (lambda: -truth, NotImplementedError, r"Negation, the `-` operator, on a bool tensor"),
        (lambda: ~real, TypeError, r"only implemented on integer and Boolean-type tensors"),
        (lambda: real & real, NotImplementedError, r'"bitwise_and" not implemented for \'Float\''),
        (lambda: F.gelu(whole), NotImplementedError, r'"gelu" not implemented for \'Long\''),
        (lambda: short + 1, NotImplementedError, r'"add" not implemented for \'Float8_e5m2\''),
        (lambda: real + "a", TypeError, r"unsupported operand"),
        (lambda: real + None, TypeError, r"unsupported operand"),
        (lambda: real < "a", TypeError, r"not supported between"),
        (lambda: torch.add(real, [1]), TypeError, r"add\(\): argument 'other' \(position 2\) must be Tensor, not list"),
        (lambda: torch.exp(1.0), TypeError, r"exp\(\): argument 'input' \(position 1\) must be Tensor, not float"),
        (lambda: torch.maximum(real, 1), TypeError, r"argument 'other' \(position 2\) must be Tensor, not int"),
        (lambda: whole.add_(0.5), RuntimeError, r"result type Float can't be cast to the desired output type Long"),
        (lambda: whole.div_(2), RuntimeError, r"result type Float can't be cast to the desired output type Long"),
        (lambda: real.expand(3).add_(1), RuntimeError, r"more than one element of the written-to tensor"),
        (lambda: real + torch.ones(1, device=1), RuntimeError, r"on the same device, .* ahbm:0 and ahbm:1!"),
    ]
    for call, kind, text in cases:
        with pytest.raises(kind, match=text):
            call()
    assert (real == None) is False and (real != "a") is True  # noqa: E711 (what PyTorch answers)
    assert (real + np.float64(1)).dtype is torch.float32 and (np.float32(2) * real).tolist() == [2]
    assert (real + np.array([2.0])).dtype is torch.float64
