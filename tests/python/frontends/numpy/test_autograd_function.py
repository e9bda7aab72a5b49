"""torch.autograd.Function: what a program's own operations are given, may return, and may get wrong."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from typing import Any

import pytest
from conftest import OpenWorld
from gradients import check

import torchemu as torch
from torchemu.autograd import Function

Tensor = torch.Tensor


@pytest.fixture(autouse=True)
def world(open_world: OpenWorld) -> torch.World:
    return open_world()


def leaf(*shape: int) -> Tensor:
    return torch.ones(*shape, requires_grad=True)


def function(forward: Callable[..., Any], backward: Callable[..., Any], name: str = "F") -> type[Function]:
    return type(name, (Function,), {"forward": staticmethod(forward), "backward": staticmethod(backward)})


class Cube(Function):
    """x³·n, with what its gradient needs kept in every way."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, n: float) -> Tensor:
        assert not torch.is_grad_enabled()
        ctx.save_for_backward(x, None)
        ctx.n = n
        return x * x * x * n

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        assert not torch.is_grad_enabled()
        x, none = ctx.saved_tensors
        assert none is None
        return 3 * grad * x * x * ctx.n, None


def test_forward_and_backward() -> None:
    x = torch.tensor([1.0, -2.0, 3.0], dtype=torch.float64, requires_grad=True)
    y = Cube.apply(x, 0.5)
    assert y.tolist() == [0.5, -4, 13.5]
    assert type(y.grad_fn).__name__ == y.grad_fn.name() == "CubeBackward"
    y.sum().backward()
    assert x.grad.tolist() == [1.5, 6, 13.5]
    check(lambda t: Cube.apply(t * 2, 0.5), x.detach().numpy())


def test_without_recording_forward_is_just_called() -> None:
    x = leaf(2)
    with torch.no_grad():
        assert not Cube.apply(x, 1).requires_grad
    assert not Cube.apply(torch.ones(2), 1).requires_grad


def test_several_results_and_arguments() -> None:
    def forward(ctx: Any, a: Tensor, text: str, b: Tensor, c: Tensor) -> Any:
        ctx.wants = ctx.needs_input_grad
        return a * b, text, None, b * c

    def backward(ctx: Any, first: Tensor, text: Any, none: Any, second: Tensor) -> Any:
        assert (text, none, ctx.wants) == (None, None, (True, False, True, False))
        return first * 2, None, first * 3 + second * 5, None

    a, b, c = leaf(2), leaf(2), torch.ones(2)
    first, text, none, second = function(forward, backward).apply(a, "text", b, c)
    assert (text, none, first.output_nr, second.output_nr) == ("text", None, 0, 3)
    (first + 10 * second).sum().backward()
    assert a.grad.tolist() == [2, 2] and b.grad.tolist() == [53, 53]


def test_a_list_is_no_tensor() -> None:
    x = leaf(2)
    found = function(lambda ctx, x: [x * 2, 3], lambda ctx, g: g).apply(x)
    assert isinstance(found, list) and not found[0].requires_grad


def test_results_without_gradient() -> None:
    seen: list[Any] = []

    def forward(ctx: Any, x: Tensor) -> Any:
        return x * 2, x.expand(3, 2) * 3

    def backward(ctx: Any, first: Tensor, second: Tensor) -> Any:
        seen.append(second.tolist())
        return first

    function(forward, backward).apply(leaf(2))[0].sum().backward()
    assert seen == [[[0, 0]] * 3]


def test_none_is_no_gradient() -> None:
    x = leaf(2)
    function(lambda ctx, x: x * 2, lambda ctx, g: None).apply(x).sum().backward()
    assert x.grad is None


def test_gradients_are_summed_and_converted_as_others() -> None:
    x = leaf(1)
    function(lambda ctx, x: x.expand(3) * 2, lambda ctx, g: g.double()).apply(x).sum().backward()
    assert x.grad.tolist() == [3] and x.grad.dtype is torch.float32


WRONG: dict[str, tuple[Any, Any, type[Exception], str]] = {
    "too few gradients": (
        lambda ctx, x, n: x * 2,
        lambda ctx, g: g,
        RuntimeError,
        r"function FBackward returned an incorrect number of gradients \(expected 2, got 1\)",
    ),
    "too many gradients": (
        lambda ctx, x, n: x * 2,
        lambda ctx, g: (g, None, g),
        RuntimeError,
        r"expected 2, got 3",
    ),
    "a gradient of a number": (
        lambda ctx, x, n: x * 2,
        lambda ctx, g: (g, g),
        RuntimeError,
        "function FBackward returned a gradient different than None at position 2, but the corresponding forward input "
        "was not a Variable",
    ),
    "another shape": (
        lambda ctx, x, n: x * 2,
        lambda ctx, g: (g[:1], None),
        RuntimeError,
        r"Function FBackward returned an invalid gradient at index 0 - got \[1\] but expected shape compatible with",
    ),
    "no tensor": (
        lambda ctx, x, n: x * 2,
        lambda ctx, g: (3, None),
        RuntimeError,
        r"expected Variable or None \(got int\)",
    ),
    "numbers kept": (
        lambda ctx, x, n: (ctx.save_for_backward(x, n), x)[1] * 2,
        lambda ctx, g: (g, None),
        TypeError,
        "save_for_backward can only save variables, but argument 1 is of type int",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_is_said(name: str) -> None:
    forward, backward, kind, text = WRONG[name]
    with pytest.raises(kind, match=text):
        function(forward, backward).apply(leaf(2) * 1, 3).sum().backward()


def test_trailing_nones_are_ignored() -> None:
    x = leaf(2)
    function(lambda ctx, x: x * 2, lambda ctx, g: (g * 2, None, None)).apply(x).sum().backward()
    assert x.grad.tolist() == [2, 2]


def test_functions_without_forward_or_backward() -> None:
    with pytest.raises(NotImplementedError, match="You must implement the forward function"):
        type("Empty", (Function,), {}).apply(leaf(1))
    y = type("Half", (Function,), {"forward": staticmethod(lambda ctx, x: x * 2)}).apply(leaf(1))
    with pytest.raises(NotImplementedError, match="You must implement either the backward or vjp method"):
        y.backward()
    with pytest.raises(TypeError, match=r"apply\(\) takes no keyword arguments"):
        Cube.apply(x=leaf(1))


# -- what is kept


def test_kept_tensors_are_checked_and_let_go() -> None:
    x = leaf(2)
    y = Cube.apply(x, 1)
    node = y.grad_fn
    assert node.saved_tensors[0] is x
    y.sum().backward()
    with pytest.raises(RuntimeError, match="Trying to backward through the graph a second time"):
        node.saved_tensors  # noqa: B018
    with pytest.raises(RuntimeError, match="Trying to backward through the graph a second time"):
        y.sum().backward()
    z = x * 1
    w = Cube.apply(z, 1)
    z.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        w.sum().backward()


def test_a_kept_result_is_seen_with_its_history_and_is_no_circle() -> None:
    def forward(ctx: Any, x: Tensor) -> Tensor:
        y = x.exp()
        ctx.save_for_backward(y)
        return y

    def backward(ctx: Any, grad: Tensor) -> Tensor:
        (y,) = ctx.saved_tensors
        assert y.requires_grad and y.grad_fn is ctx
        return grad * y

    exponential = function(forward, backward)
    x = torch.tensor([0.5, 1.0], dtype=torch.float64, requires_grad=True)
    (g,) = torch.autograd.grad(exponential.apply(x).sum(), x)
    assert g.tolist() == x.exp().tolist()
    gc.collect()
    gc.disable()
    try:
        y = exponential.apply(x)
        node = weakref.ref(y.grad_fn)
        del y
        assert node() is None
    finally:
        gc.enable()


def test_arguments_that_are_not_kept_are_free() -> None:
    x = leaf(2)
    between = x * 3
    gone = weakref.ref(between)
    y = function(lambda ctx, t, n: t * n, lambda ctx, g: (g, None)).apply(between, 2)
    del between
    assert gone() is None
    y.sum().backward()
    assert x.grad.tolist() == [3, 3]


# -- results that are arguments, and views


def test_an_argument_that_is_returned_is_another_tensor() -> None:
    identity = function(lambda ctx, x: x, lambda ctx, g: g * 2)
    x = leaf(2)
    y = identity.apply(x)
    assert y is not x and y.data_ptr() == x.data_ptr() and y.grad_fn.name() == "FBackward"
    (y * 3).sum().backward()
    assert x.grad.tolist() == [6, 6]
    z = identity.apply(x * 1)
    with pytest.raises(RuntimeError, match="Output 0 of FBackward is a view and is being modified inplace"):
        z.add_(1)
    constant = torch.ones(2)
    assert identity.apply(constant) is not constant and not identity.apply(constant).requires_grad


def test_a_view_that_is_returned() -> None:
    first = function(lambda ctx, x: x[:1], lambda ctx, g: torch.cat([g, torch.zeros(1)]))
    x = leaf(2)
    y = first.apply(x * 1)
    with pytest.raises(RuntimeError, match="Output 0 of FBackward is a view and is being modified inplace"):
        y.add_(1)
    (y * 5).sum().backward()
    assert x.grad.tolist() == [5, 0]


# -- passes within passes


def recomputed(run: Callable[[Tensor], Tensor]) -> type[Function]:
    """Does what checkpointing does: forward runs without recording, and again within the backward pass."""

    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        return run(x)

    def backward(ctx: Any, grad: Tensor) -> Any:
        (x,) = ctx.saved_tensors
        again = x.detach().requires_grad_()
        with torch.enable_grad():
            y = run(again)
        torch.autograd.backward(y, grad)
        return again.grad

    return function(forward, backward, "Recomputed")


def test_a_pass_within_a_pass() -> None:
    w = torch.tensor([2.0, 3.0], requires_grad=True)
    inner = recomputed(lambda x: torch.tanh(x * w))
    outer = recomputed(lambda x: inner.apply(x * w).exp())
    grads = []
    for fn in (outer.apply, lambda x: torch.tanh(x * w * w).exp()):
        x = torch.tensor([0.1, 0.2], requires_grad=True)
        w.grad = None
        (fn(x * 2) * 3).sum().backward()
        grads.append((x.grad.tolist(), w.grad.tolist()))
    for got, want in zip(grads[0], grads[1], strict=True):
        assert got == pytest.approx(want, rel=1e-5)
