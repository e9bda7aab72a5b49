"""Gradients of random programs of views, writes and calculations, by finite differences."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from conftest import OpenWorld
from gradients import differences, leaf

import torchemu as torch

Tensor = torch.Tensor

N = 4  # all programs calculate with matrices of N x N, and vectors of N


@pytest.fixture(autouse=True)
def world(open_world: OpenWorld) -> torch.World:
    return open_world()


def _matrix(t: Tensor) -> Tensor:
    """Any part of a matrix as a matrix again."""
    return torch.ones(N, N, dtype=torch.float64) * t.sum() / N + (t if t.shape == (N, N) else 0)


VIEWS: list[Callable[[Tensor, random.Random], Tensor]] = [
    lambda t, r: t[r.randrange(N)],
    lambda t, r: t[:, r.randrange(N)],
    lambda t, r: t[r.randrange(3) :, :: r.choice([1, 2])],
    lambda t, r: t.t(),
    lambda t, r: t.diagonal(),
    lambda t, r: t.unsqueeze(0).squeeze(0)[1:3],
    lambda t, r: t.narrow(r.randrange(2), 1, 2),
]
WRITES: list[Callable[[Tensor, Tensor], Any]] = [
    lambda v, s: v.mul_(1.5),
    lambda v, s: v.add_(s),
    lambda v, s: v.sub_(s, alpha=2),
    lambda v, s: v.copy_(s.expand(v.shape)),
    lambda v, s: v.tanh_(),
    lambda v, s: v.zero_(),
    lambda v, s: v.fill_(s),
    lambda v, s: v.sigmoid_(),
]
CALCULATIONS: list[Callable[[Tensor, Tensor], Tensor]] = [
    lambda a, b: a + b,
    lambda a, b: a * b.cos(),
    lambda a, b: torch.tanh(a @ b / N),
    lambda a, b: a.softmax(0) - b,
    lambda a, b: torch.where(torch.eye(N) > 0, a, b),
    lambda a, b: (torch.cat([a, b])[1 : N + 1]).contiguous(),
    lambda a, b: a[torch.tensor([0, 2, 2, 1])] / 2 + b,
    lambda a, b: a.masked_fill(torch.eye(N) > 0, 0.5) * 1.0 + b.mean(0),
]


def program(seed: int) -> Callable[..., Tensor]:
    """A program of one or two leaves. It never uses again what a formula has kept and a write has changed."""

    def run(x: Tensor, w: Tensor) -> Tensor:
        choose = random.Random(seed)
        values = [x * 1.0, w * 1.0]
        for _ in range(choose.randrange(3, 9)):
            at = choose.randrange(len(values))
            kind = choose.randrange(4)
            if kind == 0:
                values.append(choose.choice(CALCULATIONS)(values[at], choose.choice(values)).clone())
            elif kind == 1:
                values.append(_matrix(choose.choice(VIEWS)(values[at], choose)))
            else:
                fresh = values[at] * 1.0  # written after this, and read by what follows
                early = choose.choice(VIEWS)(fresh, choose)
                choose.choice(WRITES)(choose.choice(VIEWS)(fresh, choose), values[-1].sum() / N**2)
                values[at] = fresh
                values.append(_matrix(early))
        return sum(v.sin() for v in values)  # type: ignore[return-value]

    return run


@pytest.mark.parametrize("seed", [*range(20), *(pytest.param(n, marks=pytest.mark.slow) for n in range(20, 60))])
def test_random_programs(seed: int) -> None:
    numbers = np.random.default_rng(seed)
    arrays = [numbers.normal(size=(N, N)), numbers.normal(size=(N, N))]
    weights = numbers.normal(size=(N, N))
    run = program(seed)
    x, w = leaf(arrays[0], "CF"[seed % 2]), leaf(arrays[1])
    run(x, w).backward(torch.from_numpy(weights))
    for t, want in zip((x, w), differences(run, arrays, [weights]), strict=True):
        got = np.zeros((N, N)) if t.grad is None else t.grad.numpy()
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-6, err_msg=f"{seed=}")
