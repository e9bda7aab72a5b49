"""What a program hooks into backward passes, and what it is told about anomalies in them."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import pytest
from conftest import OpenWorld
from ranks import on_ranks

import torchemu as torch
from torchemu import runtime

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


def test_hooks_of_nodes() -> None:
    x = leaf(2)
    y = x * 3
    seen: list[Any] = []
    y.grad_fn.register_prehook(lambda grads: (grads[0] * 2,))
    y.grad_fn.register_hook(lambda found, grads: seen.append((found[0].tolist(), grads[0].tolist())))
    accumulator = x.expand_as(x).grad_fn.next_functions[0][0]
    accumulator.register_hook(lambda found, grads: seen.append(("arrived", x.grad.tolist())))
    y.sum().backward()
    assert seen == [([6, 6], [2, 2]), ("arrived", [6, 6])]
    assert torch.autograd.graph.get_gradient_edge(x).node is accumulator


def test_callbacks_at_the_end_of_a_pass() -> None:
    engine = torch.autograd.Variable._execution_engine
    x = leaf(2)
    seen: list[Any] = []
    x.register_hook(lambda g: engine.queue_callback(lambda: seen.append(x.grad.tolist())))
    x.sum().backward()
    assert seen == [[1, 1]]
    with pytest.raises(RuntimeError, match="Final callbacks can only be installed during backward pass"):
        engine.queue_callback(print)


# -- anomalies


def test_nan_is_an_anomaly_that_names_its_node_and_where_it_was_recorded() -> None:
    x = torch.zeros(2, requires_grad=True)
    with pytest.warns(UserWarning) as warned:  # noqa: SIM117
        with pytest.raises(RuntimeError, match="Function 'SqrtBackward0' returned nan values in its 0th"):
            with torch.autograd.detect_anomaly():
                assert torch.is_anomaly_enabled() and torch.is_anomaly_check_nan_enabled()
                (torch.sqrt(x) * 0).sum().backward()
    enabled, detected = (str(w.message) for w in warned)
    assert enabled.startswith("Anomaly Detection has been enabled.")
    assert detected.startswith("Error detected in SqrtBackward0. Traceback of forward call that caused the error:\n")
    assert "(torch.sqrt(x) * 0).sum().backward()" in detected and runtime.PACKAGE not in detected
    assert not torch.is_anomaly_enabled()
    (torch.sqrt(x) * 0).sum().backward()
    assert x.grad.isnan().all()


def test_a_failing_node_says_where_it_was_recorded() -> None:
    x = leaf(2)
    early = x.exp()
    with torch.autograd.set_detect_anomaly(True, check_nan=False):
        late = x.exp()
        for y, text in ((early, "No forward pass information available"), (late, "late = x.exp()")):
            y.add_(1)
            with pytest.warns(UserWarning, match="Error detected in ExpBackward0") as warned:  # noqa: SIM117
                with pytest.raises(RuntimeError, match="Hint: the backtrace further above shows the operation"):
                    y.sum().backward()
            assert text in str(warned[0].message)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(RuntimeError, match=r"torch.autograd.set_detect_anomaly\(True, check_nan=False\)"):
            early.sum().backward()


def test_the_mode_belongs_to_a_rank() -> None:
    def program(rank: int) -> bool:
        torch.autograd.set_detect_anomaly(rank == 0)
        return torch.is_anomaly_enabled()

    assert on_ranks(2, program) == [True, False]
    assert not torch.is_anomaly_enabled()
