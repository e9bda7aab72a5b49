"""Values and layouts that PyTorch has and other libraries have otherwise; recorded from PyTorch 2.11, on the host."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from conftest import OpenWorld

import torchemu as torch
from torchemu.nn import functional

A = np.arange(6.0, dtype=np.float32).reshape(2, 3)


@pytest.fixture(autouse=True)
def world(open_world: OpenWorld) -> torch.World:
    return open_world()


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (lambda t: t.flip(dims=(0,)), A[::-1]),
        (lambda t: torch.flip(t, dims=[0, 1]), A[::-1, ::-1]),
        (lambda t: t.sum(axis=0, keepdims=True), A.sum(0, keepdims=True)),
        (lambda t: t.amax(axis=1, keepdims=True), A.max(1, keepdims=True)),
        (lambda t: t.max(axis=0).values, A.max(0)),
        (lambda t: t.argmax(axis=0), A.argmax(0)),
        (lambda t: t.var(axis=0, keepdims=True), A.var(0, ddof=1, keepdims=True)),
        (lambda t: t.std(axis=1), A.std(1, ddof=1)),
        (lambda t: t.any(axis=0, keepdims=True), A.any(0, keepdims=True)),
        (lambda t: t.cumsum(axis=0), A.cumsum(0)),
        (lambda t: t.prod(axis=1), A.prod(1)),
        (lambda t: t.sort(axis=0).values, np.sort(A, 0)),
        (lambda t: t.unsqueeze(axis=1), A[:, None]),
        (lambda t: t[None].squeeze(axis=0), A),
        (lambda t: torch.stack([t, t], axis=1), np.stack([A, A], 1)),
        (lambda t: torch.index_select(t, axis=1, index=torch.tensor([2, 0])), A[:, [2, 0]]),
        (lambda t: t.softmax(axis=0).sum(axis=0), np.ones(3)),
    ],
)
def test_numpys_names_of_arguments_are_taken(call: Callable[[Any], Any], expected: np.ndarray) -> None:
    np.testing.assert_allclose(call(torch.tensor(A)).numpy(), expected, rtol=1e-6)


def test_an_argument_under_both_names_or_an_unknown_one_is_refused() -> None:
    t = torch.tensor(A)
    for wrong in ({"dim": 0, "axis": 1}, {"axes": 0}):
        with pytest.raises(TypeError):
            t.argmax(**wrong)


@pytest.mark.parametrize("equation", ["ij->ji", "ij->ij", "ba", "iJ"])
def test_einsum_that_only_permutes_is_a_view(equation: str) -> None:
    t = torch.tensor(A)
    seen = torch.einsum(equation, t)
    np.testing.assert_array_equal(seen.numpy(), np.einsum(equation, A))
    seen.mul_(2)
    np.testing.assert_array_equal(t.numpy(), A * 2)


@pytest.mark.parametrize(("equation", "shape"), [("ij->i", (2, 3)), ("ii->i", (3, 3)), ("ij->", (2, 3))])
def test_einsum_that_computes_is_a_copy(equation: str, shape: tuple[int, ...]) -> None:
    t = torch.ones(shape)
    torch.einsum(equation, t).mul_(2)
    assert t.eq(1).all()


def test_einsum_of_one_operand_has_its_gradient() -> None:
    t = torch.tensor(A, requires_grad=True)
    (torch.einsum("ij->ji", t) * torch.tensor(A.T)).sum().backward()
    np.testing.assert_array_equal(t.grad.numpy(), A)


def test_copies_to_another_device_keep_the_order_in_memory() -> None:
    t = torch.arange(24.0, device="cpu").reshape(2, 3, 4)
    for view in (t.permute(2, 0, 1), t.transpose(0, 1), t, t[0].t()):
        there = view.to("ahbm:0")
        assert there.stride() == view.stride() and there.cpu().stride() == view.stride()
        np.testing.assert_array_equal(there.cpu().numpy(), view.numpy())
    gaps = t[..., ::2].to("ahbm:0")
    assert gaps.is_contiguous()


def test_dropout_goes_through_memory_as_it_lies() -> None:
    torch.manual_seed(0)
    assert functional.dropout(torch.ones(3, 2).t(), 0.5).tolist() == [[0, 2, 0], [0, 0, 0]]


def test_each_element_has_its_own_probability() -> None:
    chances = torch.tensor([[0.0, 1.0, 0.0], [1.0, 0.0, 1.0]])
    assert torch.zeros(3, 2).t().bernoulli_(chances).tolist() == chances.tolist()
