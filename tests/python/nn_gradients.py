"""Gradients by central differences, for the tests of torch.nn."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import torchemu as torch

Function = Callable[..., Any]


def numerical(function: Function, arrays: Sequence[Any], which: int, weights: np.ndarray) -> np.ndarray:
    """The gradient of Σ weights·function(*arrays), a function of NumPy arrays, for one of them."""
    x = arrays[which]
    gradient = np.empty_like(x)
    for index in np.ndindex(x.shape):
        step = 1e-6 * max(1.0, abs(float(x[index])))
        sides = []
        for side in (step, -step):
            moved = x.copy()
            moved[index] += side
            sides.append(np.sum(weights * function(*arrays[:which], moved, *arrays[which + 1 :])))
        gradient[index] = (sides[0] - sides[1]) / (2 * step)
    return gradient


def check(function: Function, oracle: Function, arrays: Sequence[Any], seed: int = 0) -> None:
    """Compares a function of tensors with one of arrays, in float64: results, and gradients of all arrays of floats
    with the central differences of the oracle."""
    floats = [isinstance(a, np.ndarray) and a.dtype == np.float64 for a in arrays]
    given = [torch.from_numpy(a.copy()) if isinstance(a, np.ndarray) else a for a in arrays]
    for t, is_float in zip(given, floats, strict=True):
        if is_float:
            t.requires_grad_()
    result = function(*given)
    wanted = np.asarray(oracle(*arrays))
    assert result.shape == wanted.shape and result.dtype == torch.float64, f"seed {seed}"
    np.testing.assert_allclose(result.detach().numpy(), wanted, rtol=1e-12, atol=1e-13, err_msg=f"seed {seed}")
    weights = np.random.default_rng(seed).standard_normal(wanted.shape)
    result.backward(torch.from_numpy(np.asarray(weights)))
    for i, is_float in enumerate(floats):
        if is_float:
            assert given[i].grad is not None, f"operand {i}, seed {seed}"
            np.testing.assert_allclose(
                given[i].grad.numpy(),
                numerical(oracle, arrays, i, weights),
                rtol=1e-6,
                atol=2e-8,
                err_msg=f"operand {i}, seed {seed}",
            )
