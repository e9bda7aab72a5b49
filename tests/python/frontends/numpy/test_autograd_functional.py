"""torch.autograd.functional: Jacobians and Hessians against closed forms and finite differences; what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from conftest import OpenWorld
from nn_cases import refused

import torchemu as torch
from torchemu.autograd import functional


@pytest.fixture(autouse=True)
def _world(open_world: OpenWorld) -> None:
    open_world()
    torch.set_default_device("cpu")


A, B = np.array([1.0, -2.0, 0.5]), np.array([[1.0, 2.0, 3.0]])


def t(array: Any) -> torch.Tensor:
    return torch.from_numpy(np.array(array))


def close(got: Any, want: Any) -> None:
    assert tuple(got.shape) == np.shape(want) and not got.requires_grad
    np.testing.assert_allclose(got.numpy(), want, rtol=1e-9, atol=1e-12)


def mixed(a: Any, b: Any) -> Any:
    return (a * b).sin(), a.sum() ** 2


def slopes(a: np.ndarray, b: np.ndarray) -> tuple[Any, ...]:
    """The derivatives of mixed, by central differences."""
    step = 1e-6

    def at(x: np.ndarray, y: np.ndarray) -> list[np.ndarray]:
        return [v.numpy() for v in mixed(t(x), t(y))]

    found: list[list[np.ndarray]] = [[], []]
    for which, array in enumerate((a, b)):
        columns = []
        for index in np.ndindex(*array.shape):
            ends = []
            for sign in (1, -1):
                moved = [a.copy(), b.copy()]
                moved[which][index] += sign * step
                ends.append(at(*moved))
            columns.append([(p - m) / (2 * step) for p, m in zip(*ends, strict=True)])
        for out in range(2):
            stacked = np.stack([c[out] for c in columns], -1)
            found[out].append(stacked.reshape(*stacked.shape[:-1], *array.shape))
    return tuple(found)


def test_jacobians() -> None:
    found = functional.jacobian(mixed, (t(A), t(B)))
    for row, wanted in zip(found, slopes(A, B), strict=True):
        for got, want in zip(row, wanted, strict=True):
            assert tuple(got.shape) == want.shape
            np.testing.assert_allclose(got.numpy(), want, rtol=1e-6, atol=1e-8)
    close(functional.jacobian(lambda x: x**3, t(A)), np.diag(3 * A**2))
    (alone,) = functional.jacobian(lambda x: x.sum(), (t(A),))
    close(alone, np.ones(3))
    close(functional.jacobian(lambda x: torch.ones(2), t(A)), np.zeros((2, 3)))
    close(functional.jacobian(lambda x: x[:0], t(A)), np.zeros((0, 3)))
    x = t(A).requires_grad_()
    functional.jacobian(lambda x: x**3, x, create_graph=True).sum().backward()
    assert x.grad is not None and np.allclose(x.grad.numpy(), 6 * A)


def test_hessians() -> None:
    close(functional.hessian(lambda x: (x**3).sum(), t(A)), np.diag(6 * A))
    found = functional.hessian(lambda a, b: (a * b).sum() ** 2, (t(A), t(B)))
    inner = (A * B).sum()
    close(found[0][0], 2 * np.outer(B, B))
    close(found[1][1], (2 * np.outer(A, A)).reshape(1, 3, 1, 3))
    close(found[0][1], (2 * (np.outer(B, A) + inner * np.eye(3))).reshape(3, 1, 3))
    close(found[1][0], (2 * (np.outer(A, B) + inner * np.eye(3))).reshape(1, 3, 3))


def test_products() -> None:
    v, w = np.array([[0.3, -1.0, 2.0]]), np.array([1.0, 0.5, -2.0])
    jacobian = functional.jacobian(mixed, (t(A), t(B)))
    value, found = functional.vjp(mixed, (t(A), t(B)), (t(v), t(2.0)))
    close(value[0], np.sin(A * B))
    for got, by_first, by_second in zip(found, *jacobian, strict=True):
        close(got, np.tensordot(v, by_first.numpy(), 2) + 2.0 * by_second.numpy())
    value, moved = functional.jvp(mixed, (t(A), t(B)), (t(w), t(v)))
    for got, row in zip(moved, jacobian, strict=True):
        close(got, np.tensordot(row[0].numpy(), w, 1) + np.tensordot(row[1].numpy(), v, 2))
    for product in (functional.hvp, functional.vhp):
        value, found = product(lambda x: (x**3).sum(), t(A), t(w))
        close(value, (A**3).sum())
        close(found, 6 * A * w)
    close(functional.vjp(lambda x: x.sum(), t(A))[1], np.ones(3))
    close(functional.jvp(lambda x: x * t(A), t(2.0))[1], A)
    close(functional.hvp(lambda x: x.sum(), t(A), t(w))[1], np.zeros(3))


def test_refusals() -> None:
    def cube(x: Any) -> Any:
        return x**3

    def first(a: Any, b: Any) -> Any:
        return a

    for call, kind, text in (
        (
            lambda: functional.jacobian(cube, 3),
            "TypeError",
            "The inputs given to jacobian must be either a Tensor or a",
        ),
        (
            lambda: functional.jacobian(lambda x: 3, t(A)),
            "TypeError",
            "The outputs of the user-provided function given to",
        ),
        (
            lambda: functional.jacobian(first, (t(A), t(B)), strict=True),
            "RuntimeError",
            "Output 0 of the user-provided",
        ),
        (
            lambda: functional.jacobian(lambda x: t(A), t(A), strict=True),
            "RuntimeError",
            "Output 0 of the user-provided",
        ),
        (
            lambda: functional.hessian(cube, t(A)),
            "RuntimeError",
            "The Tensor returned by the function given to hessian",
        ),
        (
            lambda: functional.vjp(cube, t(A)),
            "RuntimeError",
            "The vector v can only be None if the user-provided function",
        ),
        (
            lambda: functional.jvp(cube, t(A)),
            "RuntimeError",
            "The vector v can only be None if the input to the user-prov",
        ),
        (
            lambda: functional.vjp(cube, t(A), t(B)),
            "RuntimeError",
            "v has invalid size: should be torch.Size([3]) but got",
        ),
        (
            lambda: functional.jvp(cube, t(A), (t(A),) * 2),
            "RuntimeError",
            "v is a tuple of invalid length: should be 1",
        ),
        (
            lambda: functional.jacobian(cube, t(A), strategy="forward-mode"),
            "NotImplementedError",
            "torch.autograd.funct",
        ),
    ):
        found, said = refused(call)
        assert found == kind and said.startswith(text), said
