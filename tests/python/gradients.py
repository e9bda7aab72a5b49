"""Oracle of the tests of gradients: finite differences of what the operations themselves return."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import torchemu as torch

STEP = 1e-6


def leaf(values: Any, order: str = "C") -> torch.Tensor:
    """A leaf of float64 that requires a gradient, with its memory in this order."""
    array = np.array(values, np.float64, order=order)  # type: ignore[call-overload]
    return torch.from_numpy(array).requires_grad_()


def _results(fn: Callable[..., Any], tensors: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    found = fn(*tensors)
    return [t for t in (found if isinstance(found, tuple | list) else [found]) if t.dtype.is_floating_point]


def _weighed(fn: Callable[..., Any], arrays: Sequence[np.ndarray], weights: Sequence[np.ndarray]) -> float:
    """The sum of all elements of the results, each with its weight, found without gradients."""
    with torch.no_grad():
        results = _results(fn, [torch.from_numpy(a.copy()) for a in arrays])
    return float(sum((r.numpy() * w).sum() for r, w in zip(results, weights, strict=True)))


def differences(
    fn: Callable[..., Any], arrays: Sequence[np.ndarray], weights: Sequence[np.ndarray]
) -> list[np.ndarray]:
    """The gradients of that sum, by central differences, element by element."""
    found = [np.zeros(a.shape) for a in arrays]
    for at, a in enumerate(arrays):
        for index in np.ndindex(*a.shape):
            ends = []
            for step in (STEP, -STEP):
                moved = [x.copy() for x in arrays]
                moved[at][index] += step
                ends.append(_weighed(fn, moved, weights))
            found[at][index] = (ends[0] - ends[1]) / (2 * STEP)
    return found


def check(fn: Callable[..., Any], *values: Any, seed: int = 0) -> None:
    """Compares the gradients of fn with finite differences, for operands in both orders of memory."""
    random = np.random.default_rng(seed)
    arrays = [np.array(v, np.float64) for v in values]
    for order in ("C", "F"):
        leaves = [leaf(a, order) for a in arrays]
        results = _results(fn, leaves)
        weights = [np.asarray(random.normal(size=tuple(r.shape))) for r in results]
        expected = differences(fn, arrays, weights)
        torch.autograd.backward(results, [torch.from_numpy(w) for w in weights])
        for at, (t, want) in enumerate(zip(leaves, expected, strict=True)):
            got = np.zeros(want.shape) if t.grad is None else t.grad.numpy()
            assert got.shape == want.shape, (at, got.shape, want.shape)
            np.testing.assert_allclose(got, want, rtol=2e-5, atol=2e-7, err_msg=f"operand {at}, order {order}, {seed=}")
