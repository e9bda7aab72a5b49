"""Gradients of complex numbers: a real loss's by the real part and i times that by the imaginary part, compared with
differences of the loss in float64."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from complex_numbers import SEED
from conftest import OpenWorld
from ranks import on_ranks

import torchemu as torch
import torchemu.distributed as dist
from torchemu.distributed import _functional_collectives as functional

F = torch.nn.functional
STEP = 1e-6


@pytest.fixture(autouse=True)
def world(open_world: OpenWorld) -> torch.World:
    world = open_world()
    torch.set_default_device("cpu")
    torch.set_default_dtype(torch.float64)
    return world


def number(*shape: int, seed: int = 0, real: bool = False) -> np.ndarray:
    """Numbers of moderate size, on the right half of the plane, away from 0."""
    rng = np.random.default_rng([SEED, seed])
    size = rng.uniform(0.5, 1.5, shape)
    return size if real else size * np.exp(1j * rng.uniform(-1.2, 1.2, shape))


def loss_of(outputs: Any) -> torch.Tensor:
    """A real number that depends on every part of the outputs."""
    total = torch.zeros(())
    for at, t in enumerate(outputs if isinstance(outputs, tuple | list) else [outputs]):
        weight = torch.from_numpy(np.asarray(number(*t.shape, seed=100 + at) - 0.3))
        total = total + ((t * weight).real.sum() if t.dtype.is_complex else (t * weight.real).sum())
    return total


def check(function: Callable[..., Any], *arrays: np.ndarray) -> None:
    """Compares the gradients with differences, part by part."""
    leaves = [torch.from_numpy(a.copy()).requires_grad_() for a in arrays]
    loss_of(function(*leaves)).backward()
    for at, array in enumerate(arrays):
        grad = leaves[at].grad
        assert grad is not None and grad.dtype is leaves[at].dtype and grad.shape == leaves[at].shape
        found = grad.numpy()
        for index in np.ndindex(array.shape):
            want = sum(
                unit * _difference(function, arrays, at, index, unit)
                for unit in ([1, 1j] if grad.is_complex() else [1])
            )
            assert abs(found[index] - want) < 1e-5 * (1 + abs(want)), f"operand {at}, element {index}, seed {SEED}"


def _difference(
    function: Callable[..., Any], arrays: tuple[np.ndarray, ...], at: int, index: Any, unit: complex
) -> Any:
    def moved(step: float) -> float:
        others = [a.copy() for a in arrays]
        others[at][index] += step * (unit if np.iscomplexobj(others[at]) else 1)
        with torch.no_grad():
            return loss_of(function(*map(torch.from_numpy, others))).item()

    return (moved(STEP) - moved(-STEP)) / (2 * STEP)


UNARY = [
    "abs", "angle", "neg", "sgn", "square", "reciprocal", "sqrt", "rsqrt", "exp", "exp2", "expm1", "log", "log2",
    "log10", "log1p", "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh", "asinh", "acosh",
    "atanh", "sigmoid", "conj", "sum", "mean", "prod", "var", "std", "norm", "logsumexp", "real", "imag",
    "view_as_real",
]  # fmt: skip


@pytest.mark.parametrize("name", UNARY)
def test_one_operand(name: str) -> None:
    more = [0] if name == "logsumexp" else []
    for half in (1, -1):
        check(lambda z: getattr(torch, name)(z, *more), half * number(4))
    if name in ("sum", "prod", "var", "mean", "norm", "std"):
        check(lambda z: getattr(z, name)(dim=1), number(2, 3))


BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "div": lambda a, b: a / b,
    "pow": lambda a, b: a**b,
    "lerp": lambda a, b: torch.lerp(a, b, 0.3),
    "addcmul": lambda a, b: torch.addcmul(a + 0j, b, b, value=2),
    "addcdiv": lambda a, b: torch.addcdiv(a + 0j, a, b),
    "logaddexp": lambda a, b: torch.logaddexp(a + 0j, b + 0j),
    "where": lambda a, b: torch.where(torch.tensor([True, False, True]), a, b),
    "scaled": lambda a, b: a.add(b, alpha=2.5),
}


@pytest.mark.parametrize("name", BINARY)
def test_two_operands(name: str) -> None:
    """Also where one of them is real: its gradient is."""
    a, b, x = number(3), number(3, seed=1), number(3, seed=2, real=True)
    check(BINARY[name], a, b)
    if name != "lerp":
        check(BINARY[name], a, x)
        check(BINARY[name], x, b)


OTHERS: dict[str, tuple[Callable[..., Any], tuple[np.ndarray, ...]]] = {
    "complex": (torch.complex, (number(3, real=True), number(3, seed=1, real=True))),
    "polar": (torch.polar, (number(3, real=True), number(3, seed=1, real=True))),
    "numbers": (lambda z: (2j * z, z / 2j, 3j - z, z**2, z**1.5, 2j**z, (1 + 1j) / z), (number(3),)),
    "real and numbers": (lambda x: (2j * x, x / 2j, 3j - x, x**2j, 2j**x), (number(3, real=True),)),
    "matmul": (torch.matmul, (number(2, 3), number(3, 2, seed=1))),
    "matrix and vector": (torch.matmul, (number(2, 3), number(3, seed=1))),
    "bmm": (torch.bmm, (number(2, 2, 3), number(2, 3, 1, seed=1))),
    "dot": (torch.dot, (number(3), number(3, seed=1))),
    "vdot": (torch.vdot, (number(3), number(3, seed=1))),
    "outer": (torch.outer, (number(3), number(2, seed=1))),
    "outer with real": (torch.outer, (number(3), number(2, seed=1, real=True))),
    "addmm": (lambda a, b, c: torch.addmm(a, b, c, beta=2), (number(2, 2), number(2, 3, seed=1), number(3, 2, seed=2))),
    "einsum": (lambda a, b: torch.einsum("ij,kj->ik", a, b), (number(2, 3), number(2, 3, seed=1))),
    "adjoint": (lambda z: (z.H, z.mT @ z.conj()), (number(2, 3),)),
    "cumulative": (lambda z: (z.cumsum(0), z.cumprod(0)), (number(4),)),
    "joined": (lambda a, x: (torch.cat([a, x]), torch.stack([a, a])), (number(3), number(3, seed=1, real=True))),
    "parts": (lambda z: (z[1:], z[[0, 2]], z.flip(0), z[0], z.masked_fill(z.real > 1, 2j), z.repeat(2)), (number(4),)),
    "gathered": (lambda z: z.gather(0, torch.tensor([0, 0, 2])), (number(3),)),
    "to": (lambda x: x.to(torch.complex128), (number(2, real=True),)),
    "norms": (lambda z: (z.norm(1), z.norm(3), z.norm(float("inf")), z.norm(dim=0)), (number(2, 2),)),
    "mean and variance": (lambda z: torch.var_mean(z, dim=0), (number(3, 2),)),
    "silu": (F.silu, (number(3),)),
    "of parts": (lambda z: torch.view_as_complex(torch.view_as_real(z) * 2) * z.real - z.imag, (number(3),)),
    "several ways": (lambda z: (z * z.conj()).real.sqrt() * z.abs() + z.angle(), (number(3),)),
    "spread": (lambda z, x: z * x, (number(2, 1), number(3, seed=1, real=True))),
}  # fmt: skip


@pytest.mark.parametrize("name", OTHERS)
def test_others(name: str) -> None:
    function, arrays = OTHERS[name]
    check(function, *arrays)


def in_place(z: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    out = z * 1
    out.mul_(w)
    out[1:] = out[:-1] * 2j
    out.add_(1j).conj_physical_()
    out[0].exp_()
    return out


def test_writes() -> None:
    check(in_place, number(3), number(3, seed=1))
    x = torch.zeros(3, dtype=torch.complex128, requires_grad=True)
    with pytest.raises(
        NotImplementedError, match=r"view of torch.float64 of a tensor of torch.complex128 that requires"
    ):
        (x * 1).real.mul_(2)
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad"):
        x.add_(1)


def test_at_zero_and_of_a_magnitude() -> None:
    z = torch.tensor([0j, 3 + 4j], requires_grad=True)
    z.abs().sum().backward()
    assert z.grad is not None and z.grad.tolist() == pytest.approx([0, 0.6 + 0.8j])
    z.grad = None
    (z.real * 2 + z.imag * 3).sum().backward()
    assert z.grad is not None and z.grad.tolist() == [2 + 3j] * 2
    z.grad = None
    (z * z).backward(torch.tensor([1, 1j]))
    assert z.grad is not None and z.grad.tolist() == [0, (2 * (3 - 4j)) * 1j]


def test_gradients_of_gradients() -> None:
    """Of |z|⁴/4 the gradient is |z|²z, whose product with w has, for a real loss, the gradient 2z·re(z̄w) + |z|²w."""
    z, w = torch.from_numpy(number(3)).requires_grad_(), torch.from_numpy(number(3, seed=1))
    loss = ((z * z.conj()).real ** 2).sum() / 4
    (grad,) = torch.autograd.grad(loss, z, create_graph=True)
    array, weight = number(3), number(3, seed=1)
    np.testing.assert_allclose(grad.detach().numpy(), np.abs(array) ** 2 * array)
    (twice,) = torch.autograd.grad((grad * w.conj()).real.sum(), z)
    want = 2 * array * (array.conj() * weight).real + np.abs(array) ** 2 * weight
    np.testing.assert_allclose(twice.numpy(), want)


def test_parts_that_are_lost() -> None:
    z = torch.ones(2, dtype=torch.complex64, requires_grad=True)
    with pytest.warns(UserWarning, match="discards the imaginary part"):
        (z.cdouble() * 2j).to(torch.float32).sum().backward()
    assert z.grad is not None and z.grad.dtype is torch.complex64 and z.grad.tolist() == [-2j, -2j]


def test_only_real_numbers_are_losses() -> None:
    z = torch.ones((), dtype=torch.complex128, requires_grad=True)
    with pytest.raises(RuntimeError, match=r"only for real scalar outputs but got torch.complex128"):
        (z * 2).backward()
    with pytest.raises(RuntimeError, match="only Tensors of floating point"):
        torch.ones(2, dtype=torch.int64).requires_grad_()
    assert not (z == 1).requires_grad and (z * 1).requires_grad


class Times(torch.autograd.Function):
    """z·w by hand."""

    @staticmethod
    def forward(ctx: Any, z: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(z, w)
        return z * w

    @staticmethod
    def backward(ctx: Any, *grads: torch.Tensor) -> Any:
        z, w = ctx.saved_tensors
        return grads[0] * w.conj(), grads[0] * z.conj()


def test_functions_of_a_program() -> None:
    check(Times.apply, number(3), number(3, seed=1))


def test_a_module_and_its_step() -> None:
    with pytest.warns(UserWarning, match="Complex modules are a new feature under active development"):
        layer = torch.nn.Linear(3, 2).to(torch.complex128)
    assert layer.float().weight.dtype is torch.complex128  # float() is for real ones
    assert layer.weight.dtype is torch.complex128 and layer.weight.requires_grad
    x = torch.from_numpy(number(4, 3))
    before = layer.weight.detach().numpy().copy()
    layer(x).abs().square().sum().backward()
    y = number(4, 3) @ before.T + layer.bias.detach().numpy()
    want = 2 * y.T @ number(4, 3).conj()
    assert layer.weight.grad is not None
    np.testing.assert_allclose(layer.weight.grad.numpy(), want)
    torch.optim.SGD(layer.parameters(), 0.1, momentum=0.9).step()
    np.testing.assert_allclose(layer.weight.detach().numpy(), before - 0.1 * want)


@pytest.mark.parametrize("kind", ["SGD", "Adam", "AdamW"])
def test_optimizers_take_numbers_for_their_parts(kind: str) -> None:
    values, steps = number(3), [number(3, seed=s) for s in range(1, 4)]
    z = torch.nn.Parameter(torch.from_numpy(values.copy()))
    parts = torch.nn.Parameter(torch.view_as_real(torch.from_numpy(values.copy())))
    options = {"momentum": 0.9, "weight_decay": 0.1} if kind == "SGD" else {"amsgrad": True, "weight_decay": 0.1}
    optimizers = [getattr(torch.optim, kind)([p], 0.1, **options) for p in (z, parts)]
    for step in steps:
        z.grad = torch.from_numpy(step.copy())
        parts.grad = torch.view_as_real(torch.from_numpy(step.copy()))
        for optimizer in optimizers:
            optimizer.step()
    assert torch.equal(torch.view_as_real(z.detach()), parts.detach()) and not np.array_equal(
        z.detach().numpy(), values
    )


def test_gradcheck_of_complex_numbers() -> None:
    random = np.random.default_rng(3)
    array = random.standard_normal((2, 3)) + 1j * random.standard_normal((2, 3))
    z, x = torch.from_numpy(array).requires_grad_(), torch.from_numpy(array.real.copy()).requires_grad_()
    for function, given in (
        (torch.abs, (z,)),
        (lambda z: z * z.conj() + 1j * z, (z,)),
        (lambda x: x * 1j, (x,)),
        (lambda z, x: (z.exp() * x, z.imag), (z, x)),
        (torch.sgn, (z.detach()[0, 0].requires_grad_(),)),
        (lambda z: z.T @ z, (z.detach().T.requires_grad_(),)),
    ):
        assert torch.autograd.gradcheck(function, given)
    assert torch.autograd.gradgradcheck(lambda z: z * z * z.conj(), (z,))
    assert torch.autograd.gradgradcheck(lambda z: (z**3).real, (z,), torch.ones(2, 3, dtype=torch.float64))
    assert torch.autograd.gradgradcheck(lambda z: z**3, (z,), torch.full((2, 3), 1 - 2j, dtype=torch.complex128))
    assert torch.autograd.gradcheck(lambda t: torch.view_as_complex(t.reshape(3, 2)).square().imag, (x,))


def test_gradcheck_finds_wrong_gradients_of_complex_numbers() -> None:
    class Wrong(torch.autograd.Function):
        """z², whose gradient lacks a conjugate."""

        @staticmethod
        def forward(ctx: Any, z: Any) -> Any:
            ctx.save_for_backward(z)
            return z * z

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            (z,) = ctx.saved_tensors
            return grad * 2 * z

    z = torch.tensor([1 + 2j, -0.5j], dtype=torch.complex128, requires_grad=True)
    with pytest.raises(RuntimeError, match="Jacobian mismatch for output 0"):
        torch.autograd.gradcheck(Wrong.apply, (z,))
    assert not torch.autograd.gradcheck(Wrong.apply, (z,), raise_exception=False)
    assert torch.autograd.gradcheck(lambda z: z * z, (z,))


def test_through_collectives() -> None:
    """The gradient of what all ranks get is the sum of theirs."""

    def program(rank: int) -> list[complex]:
        torch.set_default_dtype(torch.float64)
        dist.init_process_group()
        z = torch.tensor([complex(rank, 1), 2j]).requires_grad_()
        total = functional.all_reduce(z * 1j, "sum", dist.group.WORLD)
        (total.real * (rank + 1)).sum().backward()
        assert z.grad is not None
        return z.grad.tolist()

    assert on_ranks(3, program) == [[-6j, -6j]] * 3


def test_data_parallel() -> None:
    def program(rank: int) -> list[complex]:
        torch.set_default_dtype(torch.float64)
        dist.init_process_group()
        layer = torch.nn.Linear(2, 1, bias=False, dtype=torch.complex128)
        with torch.no_grad():
            layer.weight.copy_(torch.tensor([[1 + 1j, 2.0]]))
        model = torch.nn.parallel.DistributedDataParallel(layer)
        model(torch.tensor([[complex(rank, 1), 1j]])).real.sum().backward()
        assert layer.weight.grad is not None
        return layer.weight.grad.tolist()[0]

    assert on_ranks(2, program) == [[0.5 - 1j, -1j]] * 2
