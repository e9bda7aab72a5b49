"""Writes into tensors that gradients go through: into results, views and buffers; and those that are refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from conftest import OpenWorld
from gradients import check

import torchemu as torch

Tensor = torch.Tensor
Function = Callable[..., Any]


@pytest.fixture(autouse=True)
def world(open_world: OpenWorld) -> torch.World:
    return open_world()


def normal(*shape: int, seed: int = 1) -> np.ndarray:
    return np.asarray(np.random.default_rng(seed).normal(size=shape))


def index(values: Any) -> Tensor:
    return torch.tensor(values)


def leaf(*shape: int) -> Tensor:
    return torch.ones(*shape, requires_grad=True)


# -- writes into results

WRITES: dict[str, tuple[Any, ...]] = {
    "add_": (lambda y, b: y.add_(b), (3,)),
    "sub_": (lambda y, b: y.sub_(b, alpha=2), (3,)),
    "mul_": (lambda y, b: y.mul_(b), (3,)),
    "div_": (lambda y, b: y.div_(b), (3,)),
    "augmented": (lambda y, b: operators(y, b), (3,)),
    "pow_": (lambda y: y.pow_(2),),
    "exp_": (lambda y: y.exp_(),),
    "sigmoid_": (lambda y: y.sigmoid_(),),
    "tanh_": (lambda y: y.tanh_(),),
    "relu_": (lambda y: y.relu_(),),
    "clamp_": (lambda y: y.clamp_(0, 0.5),),
    "zero_": (lambda y: y.zero_(),),
    "fill_": (lambda y: y.fill_(3),),
    "fill_ with a tensor": (lambda y, b: y.fill_(b), ()),
    "copy_": (lambda y, b: y.copy_(b), (3,)),
    "masked_fill_": (lambda y: y.masked_fill_(index([True, False, True]), 1),),
    "masked_fill_ with a tensor": (lambda y, b: y.masked_fill_(index([True, False, True]), b), ()),
    "index_add_": (lambda y, b: y.index_add_(1, index([0, 0]), b, alpha=2), (2, 2)),
    "scatter_": (lambda y, b: y.scatter_(1, index([[0, 1], [2, 1]]), b), (2, 2)),
    "scatter_ of fewer": (lambda y, b: y.scatter_(1, index([[0, 1]]), b), (2, 3)),
    "scatter_ of a number": (lambda y: y.scatter_(1, index([[0, 1], [2, 1]]), 3.0),),
    "scatter_add_": (lambda y, b: y.scatter_add_(1, index([[0, 0], [2, 1]]), b), (2, 2)),
    "uniform_": (lambda y: y.uniform_(generator=torch.Generator().manual_seed(1)),),
}


def operators(y: Tensor, b: Tensor) -> Tensor:
    y += b
    y *= 2
    y -= b
    y /= 3
    y **= 2
    return y


@pytest.mark.parametrize("name", WRITES)
def test_a_write(name: str) -> None:
    fn, *shapes = WRITES[name]
    check(lambda x, *others: fn(x * 1.0, *others) * 2, normal(2, 3), *[normal(*s, seed=2) for s in shapes])


ASSIGNED: dict[str, tuple[Any, ...]] = {
    "an integer": (0, (3,)),
    "slices": ((slice(None), slice(1, None)), (2, 2)),
    "all, by a row": (slice(None), (3,)),
    "an index": (lambda: index([1]), (3,)),
    "a mask": (lambda: index([[True, False, True], [False, True, False]]), (3,)),
    "mixed": (lambda: (0, index([0, 2])), (2,)),
}


@pytest.mark.parametrize("name", ASSIGNED)
def test_an_assignment(name: str) -> None:
    where, shape = ASSIGNED[name]

    def assign(x: Tensor, value: Tensor) -> Tensor:
        y = x * 1.0
        y[where() if callable(where) else where] = value
        return y * y

    check(assign, normal(2, 3), normal(*shape, seed=2))


def test_an_assignment_of_a_number() -> None:
    def assign(x: Tensor) -> Tensor:
        y = x * 1.0
        y[0, :2] = 7
        return y * y

    check(assign, normal(2, 3))


def test_an_operand_that_is_needed_as_it_was_before_the_write_is_copied() -> None:
    def both(x: Tensor, w: Tensor) -> Tensor:
        y = x * 1.0
        return y.mul_(w) * w

    check(both, normal(3), normal(3, seed=2))


# -- views


def part_is_scaled(x: Tensor, w: Tensor) -> Tensor:
    y = x * 1.0
    y[0].mul_(w)
    return y.exp()


def part_of_a_part(x: Tensor, w: Tensor) -> Tensor:
    y = x * 1.0
    y.t()[1:].mul_(w[:2])
    return y * 2


def from_another_part(x: Tensor, w: Tensor) -> Tensor:
    y = x * 1.0
    y[0].add_(y[1] * 3)
    return y * w


def the_written_view(x: Tensor, w: Tensor) -> Tensor:
    y = x * 1.0
    return y[0].mul_(w) + y[1]


def a_view_of_what_is_written(x: Tensor, w: Tensor) -> Tensor:
    y = x * 1.0
    v = y[0]
    y.mul_(w)
    return v * y[1]


def another_view(x: Tensor, w: Tensor) -> Tensor:
    y = x * 1.0
    v, u = y[0], y[:, 1:]
    v.mul_(w)
    return u * 2


def an_expanded_view(x: Tensor, w: Tensor) -> Tensor:
    y = x * 1.0
    e = y.unsqueeze(0).expand(4, 2, 3)
    y.mul_(w)
    return e * 1


def overlapping_windows(x: Tensor, w: Tensor) -> Tensor:
    y = x * 1.0
    e = y.as_strided((2, 2, 2), (y.stride(0), y.stride(1), y.stride(1)))
    y.mul_(w)
    return e * 3


def a_zeroed_part(x: Tensor, w: Tensor) -> Tensor:
    y = x * w
    y[:, 0].zero_()
    return y * 3


def a_buffer(x: Tensor, w: Tensor) -> Tensor:
    whole = torch.zeros(4, 3, dtype=torch.float64)
    whole[:2] = x
    whole[2:] = x * w
    return whole * whole


def views_of_a_buffer(x: Tensor, w: Tensor) -> Tensor:
    whole = torch.zeros(2, 4, dtype=torch.float64)
    left, right = whole[:, :3], whole[:, 1:]
    left.copy_(x)
    right.mul_(w)
    return whole + left.sum()


def a_written_transposed_matrix(x: Tensor, w: Tensor) -> Tensor:
    y = x.t().clone()
    y[1].mul_(w[:2])
    return y.t() @ y


VIEWS = (
    part_is_scaled,
    part_of_a_part,
    from_another_part,
    the_written_view,
    a_view_of_what_is_written,
    another_view,
    an_expanded_view,
    overlapping_windows,
    a_zeroed_part,
    a_buffer,
    views_of_a_buffer,
    a_written_transposed_matrix,
)


@pytest.mark.parametrize("fn", VIEWS, ids=lambda fn: fn.__name__)
def test_views(fn: Function) -> None:
    check(fn, normal(2, 3), normal(3, seed=2))


def test_a_buffer_requires_a_gradient_from_the_write_on_and_so_do_its_views() -> None:
    x = leaf(2)
    buffer = torch.zeros(4)
    early = buffer[:3]
    assert not buffer.requires_grad and not early.requires_grad
    buffer[1:3] = x
    late = buffer[3:]
    assert buffer.requires_grad and early.requires_grad and late.requires_grad
    assert buffer.grad_fn.name() == "torch::autograd::CopySlices" and early.grad_fn.name() == "AsStridedBackward0"
    (early * torch.tensor([1.0, 2.0, 3.0])).sum().backward()
    assert x.grad.tolist() == [2, 3]


def test_views_know_what_they_are_views_of() -> None:
    x = leaf(2, 3)
    assert x[0]._base is x and x.view(-1)[1:]._base is x and x[0]._is_view()
    assert x.detach()._base is None and x.data._base is None and x.clone()._base is None
    assert x._base is None and not x._is_view()


# -- refused

LEAF = "a leaf Variable that requires grad is being used in an in-place operation."
VIEW_OF_LEAF = "a view of a leaf Variable that requires grad is being used in an in-place operation."
WITHOUT_GRAD = "A view was created in no_grad mode and is being modified inplace with grad mode enabled."
OUT = "functions with out=... arguments don't support automatic differentiation"


def without_grad(t: Tensor) -> Tensor:
    with torch.no_grad():
        return t[0]


REFUSED: dict[str, tuple[Callable[[], Any], str]] = {
    "a leaf": (lambda: leaf(3).add_(1), LEAF),
    "a leaf, by a copy": (lambda: leaf(3).copy_(torch.ones(3)), LEAF),
    "a leaf, with zeros": (lambda: leaf(3).zero_(), LEAF),
    "a leaf, at random": (lambda: leaf(3).normal_(), LEAF),
    "a leaf, by an index": (lambda: leaf(3).__setitem__(torch.tensor([0]), 1), LEAF),
    "a part of a leaf": (lambda: leaf(3)[:2].mul_(2), VIEW_OF_LEAF),
    "an assignment to a part of a leaf": (lambda: leaf(3).__setitem__(0, 2), VIEW_OF_LEAF),
    "a view of before": (lambda: without_grad(leaf(2, 3) * 1).add_(1), WITHOUT_GRAD),
    "a view of a leaf of before": (lambda: without_grad(leaf(2, 3)).add_(1), WITHOUT_GRAD),
    "one of split": (lambda: (leaf(4) * 1).split(2)[1].add_(1), "Output 1 of SplitBackward0 is a view and"),
    "one of unbind": (lambda: (leaf(4, 2) * 1).unbind()[0].add_(1), "Output 0 of UnbindBackward0 is a view and"),
    "out": (lambda: torch.add(leaf(3), 1, out=torch.zeros(3)), rf"add\(\): {OUT}"),
    "an out that requires": (lambda: torch.exp(torch.ones(3), out=leaf(3)), rf"exp\(\): {OUT}"),
    "out of a product": (lambda: torch.matmul(leaf(2, 2), leaf(2, 2), out=torch.zeros(2, 2)), OUT),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str) -> None:
    call, text = REFUSED[name]
    with pytest.raises(RuntimeError, match=text):
        call()


def test_without_recording_all_may_be_written() -> None:
    x = leaf(3)
    with torch.no_grad():
        x.add_(1)
        x[0] = 5
        x.mul_(2)
        torch.mul(x, 2, out=torch.zeros(3))
    x.data.add_(1)
    x.detach().mul_(2)
    assert x.tolist() == [22, 10, 10] and x.is_leaf and x.requires_grad


# -- versions


def test_writes_are_counted_for_all_that_share_the_memory() -> None:
    x = torch.zeros(4)
    view, alias = x[:2], x.detach()
    assert x._version == 0
    x.add_(1)
    view.mul_(2)
    alias[0] = 3
    torch.add(x, 1, out=alias)
    assert x._version == view._version == alias._version == 4
    with torch.no_grad():
        x.zero_()
    assert alias._version == 5


def test_writes_through_data_are_not_counted() -> None:
    x = leaf(3)
    y = x * x
    x.data.add_(1)
    assert x._version == 0
    y.sum().backward()
    assert x.grad.tolist() == [4, 4, 4]


MODIFIED = "one of the variables needed for gradient computation has been modified by an inplace operation: "


def result_is_written(x: Tensor) -> Tensor:
    y = x.exp()
    y.add_(1)
    return y


def operand_is_written(x: Tensor) -> Tensor:
    w = torch.ones(3)
    y = x * w
    w.add_(1)
    return y


def operand_is_written_through_an_alias(x: Tensor) -> Tensor:
    w = torch.ones(3)
    y = x * w
    w.detach()[0] = 5
    return y


def operand_is_written_through_a_view(x: Tensor) -> Tensor:
    w = x * 1
    y = w * w
    w[0].add_(1)
    return y


def index_is_written(x: Tensor) -> Tensor:
    i = torch.tensor([0, 1])
    y = x[i]
    i.zero_()
    return y


def squared_in_place(x: Tensor) -> Tensor:
    y = x * 1
    return y.mul_(y)


WRONG = (
    result_is_written,
    operand_is_written,
    operand_is_written_through_an_alias,
    operand_is_written_through_a_view,
    index_is_written,
    squared_in_place,
)


@pytest.mark.parametrize("fn", WRONG, ids=lambda fn: fn.__name__)
def test_what_has_been_written_since_is_refused_backwards(fn: Function) -> None:
    x = leaf(3)
    with pytest.raises(RuntimeError, match=MODIFIED):
        fn(x).sum().backward()
    assert x.grad is None


def test_the_refusal_names_the_tensor() -> None:
    x = torch.ones(3, requires_grad=True, device="cpu")
    text = (
        rf"{MODIFIED}\[torch.FloatTensor \[3\]\], which is output 0 of ExpBackward0, is at version 1; "
        "expected version 0 instead"
    )
    with pytest.raises(RuntimeError, match=text):
        result_is_written(x).sum().backward()


def test_what_no_formula_looks_at_may_be_written() -> None:
    x = leaf(3)
    y = x + 1
    y.mul_(2)
    z = y * 3
    y.zero_()
    z.sum().backward()
    assert x.grad.tolist() == [6, 6, 6]


# -- data


def test_data_can_be_replaced() -> None:
    x = leaf(2)
    y = x * x
    x.data = torch.full((2,), 5.0)
    assert x.requires_grad and x.is_leaf and x._version == 0
    y.sum().backward()
    assert x.grad.tolist() == [10, 10]


def test_detach_() -> None:
    x = leaf(2)
    y = x * 2
    assert y.detach_() is y
    assert y.is_leaf and not y.requires_grad
    with pytest.raises(RuntimeError, match=r"Can't detach views in-place"):
        (x * 1)[0].detach_()
