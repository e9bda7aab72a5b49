"""Tests of what a program hooks into backward passes, and what hooks may return."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from conftest import OpenWorld

import torchemu as torch

Tensor = torch.Tensor


@pytest.fixture(autouse=True)
def world(open_world: OpenWorld) -> torch.World:
    return open_world()


def leaf(*shape: int) -> Tensor:
    return torch.ones(*shape, requires_grad=True)


# -- hooks


def test_hooks_of_tensors_change_the_gradient() -> None:
    x = leaf(2)
    y = x * 3
    seen: list[Any] = []
    y.register_hook(lambda g: g * 10)
    second = y.register_hook(lambda g: seen.append(g.tolist()))
    x.register_hook(lambda g: g + 1)
    y.sum().backward(retain_graph=True)
    assert seen == [[10, 10]] and x.grad.tolist() == [31, 31]
    second.remove()
    y.sum().backward()
    assert len(seen) == 1


@pytest.mark.parametrize(
    ("hook", "kind", "text"),
    [
        (lambda g: 3, TypeError, "expected Variable, but hook returned 'int'"),
        (lambda g: g[:1], RuntimeError, "hook '<lambda>' has changed the size of value"),
    ],
)
def test_hooks_must_return_gradients(hook: Callable[..., Any], kind: type[Exception], text: str) -> None:
    y = leaf(2) * 2
    y.register_hook(hook)
    with pytest.raises(kind, match=text):
        y.sum().backward()


def test_hooks_after_accumulation() -> None:
    x = leaf(2)
    seen: list[Any] = []

    def take(t: Tensor) -> None:
        seen.append(t.grad.tolist())
        t.grad = None

    handle = x.register_post_accumulate_grad_hook(take)
    for _ in range(2):
        (x * 2).sum().backward()
    assert seen == [[2, 2], [2, 2]] and x.grad is None
    handle.remove()
    (x * 2).sum().backward()
    assert x.grad.tolist() == [2, 2]
