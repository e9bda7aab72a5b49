"""torch.utils.checkpoint: results and gradients are those of the plain call, and the function is called twice."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from conftest import OpenWorld

import torchemu as torch
from torchemu.utils.checkpoint import checkpoint, checkpoint_sequential, detach_variable


@pytest.fixture(autouse=True)
def _world(open_world: OpenWorld) -> None:
    open_world("default")


both = pytest.mark.parametrize("reentrant", [True, False])


def leaf(*values: float) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.float64, requires_grad=True)


@both
def test_gradients_of_arguments_and_parameters(reentrant: bool) -> None:
    def found(call: Callable[..., Any]) -> list[Any]:
        torch.manual_seed(5)
        x, w = leaf(1, 2, 3), leaf(0.5, -1, 2)
        before = x * 3
        y, z = call(
            lambda a, factor: ((a * w).sin() * torch.rand(3, dtype=torch.float64), a.exp() * factor), before, 2.0
        )
        after = torch.rand(2).tolist()
        (y.sum() + (z * z).sum()).backward()
        assert x.grad is not None and w.grad is not None
        return [y.tolist(), z.tolist(), x.grad.tolist(), w.grad.tolist(), after, torch.rand(2).tolist()]

    plain = found(lambda function, *args: function(*args))
    assert found(lambda function, *args: checkpoint(function, *args, use_reentrant=reentrant)) == plain


@both
def test_the_function_is_called_twice(reentrant: bool) -> None:
    calls = []

    def function(x: torch.Tensor) -> torch.Tensor:
        calls.append(x.tolist())
        return x * x

    x = leaf(3)
    y = checkpoint(function, x, use_reentrant=reentrant)
    assert calls == [[3]]
    y.sum().backward()
    assert calls == [[3], [3]]
    assert x.grad is not None and x.grad.tolist() == [6]


@both
def test_checkpoints_in_checkpoints(reentrant: bool) -> None:
    def inner(x: torch.Tensor) -> torch.Tensor:
        return checkpoint(lambda a: a * a, x, use_reentrant=reentrant) + 1

    x = leaf(2, 3)
    checkpoint(inner, x, use_reentrant=reentrant).prod().backward()
    assert x.grad is not None and x.grad.tolist() == [2 * 2 * 10, 2 * 3 * 5]


def test_keywords_structures_and_tensors_without_gradients() -> None:
    x, w, constant = leaf(1, 2), leaf(3, 4), torch.tensor([5.0, 6.0], dtype=torch.float64)

    def function(pair: Any, *, scale: Any) -> dict[str, Any] | Any:
        return pair[0] * pair[1]["w"] * scale, constant * 2, "text"

    y, z, text = checkpoint(function, (x, {"w": w}), scale=constant, use_reentrant=False)
    assert (z.requires_grad, text) == (False, "text")
    y.sum().backward()
    assert x.grad is not None and x.grad.tolist() == [15, 24]
    assert w.grad is not None and w.grad.tolist() == [5, 12]


def test_gradients_of_closures_without_arguments_that_need_any() -> None:
    w = leaf(2)
    y = checkpoint(lambda a: a * w, torch.tensor([3.0], dtype=torch.float64), use_reentrant=False)
    y.backward(torch.ones(1, dtype=torch.float64))
    assert w.grad is not None and w.grad.tolist() == [3]
    assert not checkpoint(lambda a: a * 2, torch.ones(1), use_reentrant=False).requires_grad
    with torch.no_grad():
        assert not checkpoint(lambda a: a * w, w, use_reentrant=False).requires_grad


def test_contexts() -> None:
    entered = []

    @contextlib.contextmanager
    def context(name: str) -> Iterator[None]:
        entered.append(name)
        yield

    x = leaf(1)
    checkpoint(
        lambda a: a * 2, x, use_reentrant=False, context_fn=lambda: (context("first"), context("again"))
    ).backward()
    assert entered == ["first", "again"]


def test_other_random_numbers_where_they_need_not_be_kept() -> None:
    seen = []

    def function(x: torch.Tensor) -> torch.Tensor:
        seen.append(torch.rand(1).item())
        return x * 2

    checkpoint(function, leaf(1), use_reentrant=True, preserve_rng_state=False).backward()
    assert seen[0] != seen[1]


@both
@pytest.mark.parametrize("segments", [1, 2, 3])
def test_in_segments(reentrant: bool, segments: int) -> None:
    steps = [lambda a: a * 2, lambda a: a + 1, lambda a: a * a, lambda a: a.exp(), lambda a: -a]
    x, plain = leaf(0.1, 0.2), leaf(0.1, 0.2)
    y: Any = plain
    for step in steps:
        y = step(y)
    y.sum().backward()
    found = checkpoint_sequential(steps, segments, x, use_reentrant=reentrant)
    found.sum().backward()
    assert found.tolist() == y.tolist()
    assert x.grad is not None and plain.grad is not None and x.grad.tolist() == plain.grad.tolist()


def test_what_is_wrong() -> None:
    with pytest.warns(UserWarning, match="the use_reentrant parameter should be passed explicitly"):
        checkpoint(lambda a: a, leaf(1))
    with pytest.warns(UserWarning, match="None of the inputs have requires_grad=True. Gradients will be None"):
        checkpoint(lambda a: a, torch.ones(1), use_reentrant=True)
    with pytest.raises(ValueError, match="Unexpected keyword arguments: b"):
        checkpoint(lambda a, b: a, leaf(1), use_reentrant=True, b=2)
    with pytest.raises(ValueError, match="only supported when use_reentrant=False"):
        checkpoint(lambda a: a, leaf(1), use_reentrant=True, debug=True)
    with pytest.raises(RuntimeError, match="none of output has requires_grad=True, this checkpoint"):
        checkpoint(lambda a: a.detach(), leaf(1), use_reentrant=True).backward()
    with pytest.raises(RuntimeError, match="Only tuple of tensors is supported"):
        detach_variable([leaf(1)])  # type: ignore[arg-type]
    x, text = detach_variable((leaf(1), "text"))
    assert x.is_leaf and x.requires_grad and text == "text"


def test_states_of_devices() -> None:
    x = torch.ones(2)
    devices, states = torch.utils.checkpoint.get_device_states(x, 3, torch.ones(1, device="cpu"), x)
    assert devices == [0]
    first = torch.rand(3).tolist()
    torch.utils.checkpoint.set_device_states(devices, states)
    assert torch.rand(3).tolist() == first
    assert torch.utils.checkpoint.get_device_states(torch.ones(1, device="cpu")) == ([], [])


def test_settings_without_a_meaning() -> None:
    with (
        torch.utils.checkpoint.set_checkpoint_early_stop(False),
        torch.utils.checkpoint.set_checkpoint_debug_enabled(True),
    ):
        assert checkpoint(lambda a: a * 2, leaf(1), use_reentrant=False).tolist() == [2]


def test_selective_checkpoints_are_not_supported() -> None:
    with pytest.raises(NotImplementedError, match="checkpoint smaller functions instead"):
        torch.utils.checkpoint.create_selective_checkpoint_contexts([])
    with pytest.raises(AttributeError, match=r"module 'torch.utils' has no attribute 'nothing'"):
        _ = torch.utils.nothing
