"""Hooks of modules in backward passes: when they are called, with what, and what they may change."""

from __future__ import annotations

from typing import Any

import pytest
from conftest import OpenWorld
from nn_cases import refused

import torchemu as torch
from torchemu import nn


@pytest.fixture(autouse=True)
def _world(open_world: OpenWorld) -> None:
    open_world()
    torch.set_default_device("cpu")


class Scaled(nn.Module):
    """Twice its first argument, and the second as it is."""

    def forward(self, x: torch.Tensor, y: Any = None) -> Any:
        return x * 3 if y is None else (x * 2, y)


def lists(grads: tuple[Any, ...]) -> list[Any]:
    return [None if g is None else g.tolist() for g in grads]


def test_order_and_gradients() -> None:
    m, log = Scaled(), []
    m.register_full_backward_hook(lambda module, inputs, outputs: log.append((module, lists(inputs), lists(outputs))))
    m.register_full_backward_pre_hook(lambda module, outputs: log.append(lists(outputs)))
    x = torch.ones(2, requires_grad=True)
    m(x).sum().backward()
    assert log == [[[1, 1]], (m, [[3, 3]], [[1, 1]])] and x.grad is not None and x.grad.tolist() == [3, 3]
    log.clear()
    out, same = m(x, torch.ones(3))
    assert not same.requires_grad
    out.sum().backward()
    assert log == [[[1, 1], None], (m, [[2, 2], [0, 0, 0]], [[1, 1], None])]
    log.clear()
    m(torch.ones(2))
    with torch.no_grad():
        m(x)
    assert log == []


def test_each_call_has_its_own() -> None:
    m, log = Scaled(), []
    m.register_full_backward_hook(lambda module, inputs, outputs: log.append((lists(inputs), lists(outputs))))
    x = torch.ones(1, requires_grad=True)
    m(m(x)).sum().backward()
    assert log == [([[3]], [[1]]), ([[9]], [[3]])]


def test_of_a_layer_whose_arguments_need_no_gradient() -> None:
    m, log = nn.Linear(2, 1), []
    m.register_full_backward_hook(lambda module, inputs, outputs: log.append((inputs, lists(outputs))))
    with pytest.warns(UserWarning, match="since no inputs require gradients"):
        m(torch.ones(1, 2)).sum().backward()
    assert log == [((None,), [[[1.0]]])] and m.weight.grad is not None


def test_gradients_may_be_replaced() -> None:
    m, x = Scaled(), torch.ones(2, requires_grad=True)
    handle = m.register_full_backward_hook(lambda module, inputs, outputs: (inputs[0] * 10,))
    m.register_full_backward_pre_hook(lambda module, outputs: outputs[0] * 5)
    m(x).sum().backward()
    assert x.grad is not None and x.grad.tolist() == [150, 150]
    handle.remove()
    x.grad = None
    m(x).sum().backward()
    assert x.grad is not None and x.grad.tolist() == [15, 15]


def test_parameters_get_theirs_too() -> None:
    m, x = nn.Linear(2, 1, bias=False), torch.ones(1, 2, requires_grad=True)
    m.register_full_backward_pre_hook(lambda module, outputs: (outputs[0] * 2,))
    m(x).sum().backward()
    assert m.weight.grad is not None and m.weight.grad.tolist() == [[2, 2]]


def test_misuse() -> None:
    x = torch.ones(2, requires_grad=True)

    def with_hook(hook: Any, pre: bool = False) -> tuple[str, str]:
        m = Scaled()
        (m.register_full_backward_pre_hook if pre else m.register_full_backward_hook)(hook)
        return refused(lambda: m(x).sum().backward())

    assert with_hook(lambda module, inputs, outputs: (None, None)) == (
        "RuntimeError",
        "Backward hook returned an invalid number of grad_input, got 2, but expected 1",
    )
    assert with_hook(lambda module, outputs: (None, None), pre=True) == (
        "RuntimeError",
        "Backward pre hook returned an invalid number of grad_output, got 2, but expected 1",
    )
    assert refused(lambda: Scaled().register_backward_hook(print))[0] == "NotImplementedError"

    class Named(nn.Module):
        def forward(self, x: torch.Tensor) -> Any:
            return {"x": x}

    m = Named()
    m.register_full_backward_hook(lambda *_: None)
    with pytest.warns(UserWarning, match="should be a Tensor or a tuple of Tensors but received <class 'dict'>"):
        m(x)
