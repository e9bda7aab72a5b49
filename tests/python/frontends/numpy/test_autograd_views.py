"""The derivatives of views, parts, and of what moves elements, by finite differences."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from conftest import OpenWorld
from gradients import check

import torchemu as torch

Function = Callable[..., Any]


@pytest.fixture(autouse=True)
def world(open_world: OpenWorld) -> torch.World:
    return open_world()


def normal(*shape: int, seed: int = 1) -> np.ndarray:
    return np.asarray(np.random.default_rng(seed).normal(size=shape))


def index(values: Any) -> torch.Tensor:
    return torch.tensor(values)


VIEWS: dict[str, Function] = {
    "reshape": lambda x: x.reshape(3, 2),
    "view": lambda x: x.contiguous().view(-1, 1, 2),
    "flatten": lambda x: x.flatten(),
    "t": lambda x: x.t(),
    "T": lambda x: x.T,
    "mT": lambda x: x.mT,
    "permute": lambda x: x.unsqueeze(0).permute(2, 0, 1),
    "expand": lambda x: x.unsqueeze(1).expand(2, 4, 3),
    "expand in front": lambda x: x.expand(2, 2, 3),
    "squeeze": lambda x: x.unsqueeze(0).squeeze(),
    "unsqueeze": lambda x: x.unsqueeze(-1),
    "narrow": lambda x: x.narrow(1, 1, 2),
    "narrow to nothing": lambda x: x.narrow(1, 1, 0),
    "select": lambda x: x.select(1, -1),
    "an integer": lambda x: x[1],
    "slices": lambda x: x[:, ::2],
    "mixed": lambda x: x[1, None, 1:],
    "ellipsis": lambda x: x[..., 0],
    "chain": lambda x: x.T.flatten()[1:4].reshape(3, 1)[1],
    "chunk": lambda x: x.chunk(2, 1),
    "split": lambda x: x.split([1, 2], 1),
    "only one of split": lambda x: x.split(1, 1)[1],
    "unbind": lambda x: x.unbind(1),
    "iteration": lambda x: [row * 2 for row in x],
    "diagonal": lambda x: x.diagonal(1),
    "as_strided": lambda x: x.contiguous().as_strided((2, 2), (1, 1), 1),
    "contiguous": lambda x: x.t().contiguous(),
    "clone": lambda x: x.clone(),
    "to and back": lambda x: x.to("cpu").to("ahbm") * x.double(),
}

PUT_TOGETHER: dict[str, Function] = {
    "cat": lambda x: torch.cat([x, x[:1], 2 * x]),
    "cat with nothing": lambda x: torch.cat([x, torch.zeros(0, dtype=torch.float64), x], 1),
    "cat with constants": lambda x: torch.cat([torch.ones(2, 1), x], 1),
    "stack": lambda x: torch.stack([x, x * x], 1),
    "repeat": lambda x: x.repeat(2, 1, 3),
    "repeat never": lambda x: x.repeat(0, 1),
}

TAKEN: dict[str, Function] = {
    "rows": lambda x: x[index([1, 0, 1])],
    "columns": lambda x: x[:, index([2, 0, 2])],
    "elements": lambda x: x[index([0, 1, 0]), index([2, 2, 2])],
    "a list": lambda x: x[[0, 1, 1]],
    "a mask": lambda x: x[index([[True, False, True], [False, True, False]])],
    "a mask of rows": lambda x: x[index([True, False])],
    "None": lambda x: x[None, index([1])],
    "with a slice": lambda x: x[1:, index([0, 0])],
    "with an integer": lambda x: x[0, index([0, 0])],
    "without dimensions": lambda x: x[index(1)],
    "nothing": lambda x: x[torch.tensor([], dtype=torch.int64)],
    "masked_select": lambda x: x.masked_select(index([True, False, True])),
    "index_select": lambda x: x.index_select(1, index([0, 2, 2])),
    "gather": lambda x: x.gather(1, index([[0, 2, 2, 1], [1, 1, 1, 1]])),
    "gather fewer": lambda x: x.gather(0, index([[0, 1]])),
}

MOVED: dict[str, Function] = {
    "flip": lambda x: x.flip(0, 1),
    "tril": lambda x: x.tril(),
    "triu": lambda x: x.triu(1),
}

PUT: dict[str, Function] = {
    "scatter": lambda x: x.scatter(1, index([[0, 1], [2, 1]]), 3.0),
    "scatter_add": lambda x: x.scatter_add(1, index([[0, 0], [2, 1]]), x[:, 1:]),
    "index_add": lambda x: x.index_add(0, index([1, 1]), x, alpha=3),
}

FUNCTIONS = {**VIEWS, **PUT_TOGETHER, **TAKEN, **MOVED, **PUT}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_gradients(name: str) -> None:
    check(FUNCTIONS[name], normal(2, 3))


@pytest.mark.parametrize("shape", [(0, 3), (1, 1), (5, 4)], ids=str)
@pytest.mark.parametrize("name", ["flatten", "t", "contiguous", "expand in front", "cat", "stack", "flip", "tril"])
def test_gradients_of_other_shapes(name: str, shape: tuple[int, ...]) -> None:
    functions = {**FUNCTIONS, "expand in front": lambda x: x.expand(3, *x.shape)}
    check(functions[name], normal(*shape))


def test_rows_that_are_taken_often_add_up() -> None:
    table = torch.zeros(4, 2, requires_grad=True)
    table[index([[1, 1], [1, 3]])].sum().backward()
    assert table.grad.tolist() == [[0, 0], [3, 3], [0, 0], [1, 1]]


def test_detached_tensors_and_those_made_without_gradients_end_the_way() -> None:
    x = torch.ones(3, requires_grad=True)
    with torch.no_grad():
        constant = x * 5
    (x * x.detach() * constant + x.data).sum().backward()
    assert x.grad.tolist() == [5, 5, 5]
    assert not constant.requires_grad and constant.is_leaf


def test_the_gradient_of_a_leaf_has_its_layout() -> None:
    x = torch.from_numpy(np.asfortranarray(normal(2, 3))).requires_grad_()
    (x * 2).sum().backward()
    assert x.grad.stride() == x.stride() == (1, 2)
    y = torch.ones(2, 3, requires_grad=True)
    (y.t() * torch.ones(3, 2)).sum().backward()
    assert y.grad.stride() == (3, 1)


def test_an_operand_that_is_wider_in_no_way_is_not_summed() -> None:
    """A gradient of the operand's shape is handed on as it is."""
    x = torch.ones(2, 3, requires_grad=True)
    seed = torch.ones(2, 3)
    (x + 1).backward(seed)
    assert x.grad.tolist() == seed.tolist() and x.grad.data_ptr() != seed.data_ptr()
