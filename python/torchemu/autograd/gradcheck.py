"""torch.autograd.gradcheck: gradients compared with finite differences."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from torchemu._autograd.api import grad as gradients_of
from torchemu._tensor.core import Tensor

__all__ = ["GradcheckError", "gradcheck"]


class GradcheckError(RuntimeError):
    """A gradient is not what finite differences say."""


def gradcheck(
    func: Callable[..., Any],
    inputs: Any,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
) -> bool:
    """Whether the gradients of func at the inputs are what small changes of single elements say.

    Args:
        func: a function of tensors that returns a tensor or a tuple of them.
        inputs: its arguments. Those that require gradients should be of float64, and be nothing else's memory.
        eps: how much an element is changed, both ways.
        atol, rtol: how far both may be apart: \\|a - n\\| ≤ atol + rtol·\\|n\\|.
        raise_exception: raise instead of returning False.
        nondet_tol: how far the gradients of two backward passes may be apart.

    Raises:
        GradcheckError: they are not. ValueError: no input requires a gradient.
    """
    given = tuple(inputs) if isinstance(inputs, Sequence) else (inputs,)
    checked = [t for t in given if isinstance(t, Tensor) and t.requires_grad]
    if not checked:
        raise ValueError(
            "gradcheck expects at least one input tensor to require gradient, but none of the them have "
            "requires_grad=True."
        )
    try:
        for at, t in enumerate(checked):
            _check_input(func, given, t, at, eps, (atol, rtol), nondet_tol)
    except GradcheckError:
        if raise_exception:
            raise
        return False
    return True


def _check_input(
    func: Callable[..., Any],
    given: tuple[Any, ...],
    t: Tensor,
    at: int,
    eps: float,
    tolerances: tuple[float, float],
    nondet_tol: float,
) -> None:
    atol, rtol = tolerances
    expected = _numerical(func, given, t, eps)
    for output, numerical in enumerate(expected):
        analytical = _analytical(func, given, t, output)
        again = _analytical(func, given, t, output)
        if analytical.size and np.abs(analytical - again).max() > nondet_tol:
            raise GradcheckError(
                "Backward is not reentrant, i.e., running backward with same input and grad_output multiple times "
                "gives different values."
            )
        if not np.allclose(analytical, numerical, rtol, atol, equal_nan=True):
            raise GradcheckError(
                f"Jacobian mismatch for output {output} with respect to input {at},\n"
                f"numerical:{numerical}\nanalytical:{analytical}\n"
            )


def _outputs(func: Callable[..., Any], given: tuple[Any, ...]) -> list[Tensor]:
    found = func(*given)
    several = found if isinstance(found, tuple | list) else (found,)
    return [t for t in several if isinstance(t, Tensor) and t.dtype.is_floating_point]


def _values(func: Callable[..., Any], given: tuple[Any, ...]) -> list[np.ndarray]:
    return [t.detach().numpy().astype(np.float64).reshape(-1) for t in _outputs(func, given)]


def _numerical(func: Callable[..., Any], given: tuple[Any, ...], t: Tensor, eps: float) -> list[np.ndarray]:
    """For each output the differences, a row for each element of t."""
    elements = t.data.numpy()
    rows: list[list[np.ndarray]] = []
    for index in np.ndindex(*elements.shape):
        before = elements[index]
        elements[index] = before + eps
        above = _values(func, given)
        elements[index] = before - eps
        below = _values(func, given)
        elements[index] = before
        rows.append([(a - b) / (2 * eps) for a, b in zip(above, below, strict=True)])
    sizes = [v.size for v in _values(func, given)]
    return [np.array([row[i] for row in rows]).reshape(-1, n) for i, n in enumerate(sizes)]


def _analytical(func: Callable[..., Any], given: tuple[Any, ...], t: Tensor, output: int) -> np.ndarray:
    """The same by backward passes, one for each element of the output."""
    result = _outputs(func, given)[output]
    found = np.zeros((t.numel(), result.numel()))
    if not result.requires_grad:
        return found
    for i in range(result.numel()):
        one = np.zeros(result.numel())
        one[i] = 1
        seed = result.new_tensor(one.tolist()).reshape(result.shape)
        (g,) = gradients_of(result, t, seed, retain_graph=True, allow_unused=True)
        if g is not None:
            found[:, i] = g.detach().numpy().reshape(-1)
    return found
