"""torch.autograd.gradcheck: gradients compared with finite differences."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from torchemu import dtypes
from torchemu.frontends.numpy._autograd.api import grad as gradients_of
from torchemu.frontends.numpy._tensor.complex_numbers import view_as_real
from torchemu.frontends.numpy._tensor.core import Tensor
from torchemu.frontends.numpy._tensor.from_data import tensor
from torchemu.frontends.numpy._tensor.random_numbers import randn_like
from torchemu.unsupported import unsupported

__all__ = ["GradcheckError", "gradcheck", "gradgradcheck"]


class GradcheckError(RuntimeError):
    """A gradient is not what finite differences say."""


class _Limits(NamedTuple):
    """How much elements are changed, and how far both Jacobians may be apart, and those of two backward passes."""

    eps: float
    atol: float
    rtol: float
    nondet_tol: float


def gradcheck(
    func: Callable[..., Any],
    inputs: Any,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False,
    check_batched_grad: bool = False,
    check_batched_forward_grad: bool = False,
    check_forward_ad: bool = False,
    check_backward_ad: bool = True,
    fast_mode: bool = False,
    masked: bool | None = None,
) -> bool:
    """Whether the gradients of func at the inputs are what small changes of single elements say.

    Args:
        func: a function of tensors that returns a tensor or a tuple of them.
        inputs: its arguments. Those that require gradients should be of float64, and be nothing else's memory; or of
            complex128, of which both parts are changed.
        eps: how much an element is changed, both ways.
        atol, rtol: how far both may be apart: \\|a - n\\| ≤ atol + rtol·\\|n\\|.
        raise_exception: raise instead of returning False.
        nondet_tol: how far the gradients of two backward passes may be apart.
        check_batched_grad, check_batched_forward_grad, check_forward_ad: not supported.
        check_undefined_grad, check_grad_dtypes, check_backward_ad, fast_mode, masked: mean nothing here: all elements
            are changed, and gradients always have the dtypes of what they are of.

    Raises:
        GradcheckError: they are not. ValueError: no input requires a gradient. NotImplementedError: not supported.
    """
    if check_batched_grad or check_batched_forward_grad or check_forward_ad:
        raise unsupported("gradcheck of batched gradients or in forward mode", "there are backward passes only")
    given = tuple(inputs) if isinstance(inputs, Sequence) else (inputs,)
    limits, checked = _Limits(eps, atol, rtol, nondet_tol), _checked(given)
    _warn_of_others(given)
    try:
        for at, t in enumerate(checked):
            _check_input(func, given, t, at, limits)
    except GradcheckError:
        if raise_exception:
            raise
        return False
    return True


def gradgradcheck(
    func: Callable[..., Any],
    inputs: Any,
    grad_outputs: Any = None,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    gen_non_contig_grad_outputs: bool = False,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False,
    check_batched_grad: bool = False,
    check_fwd_over_rev: bool = False,
    check_rev_over_rev: bool = True,
    fast_mode: bool = False,
    masked: bool = False,
) -> bool:
    """The same for the gradients themselves: whether their gradients are what small changes say.

    Args:
        func, inputs, eps, atol, rtol, raise_exception, nondet_tol: as for gradcheck.
        grad_outputs: the gradients of what func returns; None: random ones.
        check_batched_grad, check_fwd_over_rev: not supported.
        gen_non_contig_grad_outputs, check_undefined_grad, check_grad_dtypes, check_rev_over_rev, fast_mode, masked:
            mean nothing here.

    Raises:
        GradcheckError: they are not. ValueError: no input requires a gradient. NotImplementedError: not supported.
    """
    given = tuple(inputs) if isinstance(inputs, Sequence) else (inputs,)
    _checked(given)
    if grad_outputs is None:
        seeds = tuple(randn_like(y) for y in _outputs(func, given))
    else:
        seeds = tuple(grad_outputs) if isinstance(grad_outputs, Sequence) else (grad_outputs,)
    seeds = tuple(_parts(seed.detach()).requires_grad_() for seed in seeds)

    def gradients(*both: Any) -> tuple[Tensor, ...]:
        arguments = both[: len(given)]
        outputs = _outputs(func, arguments)
        pairs = [(y, g) for y, g in zip(outputs, both[len(given) :], strict=True) if y.requires_grad]
        ys, gs = [y for y, _ in pairs], [g for _, g in pairs]
        found = gradients_of(ys, _checked(arguments), gs, create_graph=True, allow_unused=True)
        return tuple(g for g in found if g is not None)

    return gradcheck(
        gradients,
        (*given, *seeds),
        eps=eps,
        atol=atol,
        rtol=rtol,
        raise_exception=raise_exception,
        nondet_tol=nondet_tol,
        check_batched_grad=check_batched_grad,
        check_forward_ad=check_fwd_over_rev,
    )


def _parts(t: Tensor) -> Tensor:
    """Complex numbers as pairs of real ones: what is checked is a function of those."""
    return view_as_real(t) if t.dtype.is_complex else t


def _numbers(array: np.ndarray) -> np.ndarray:
    """The same of an array, in its memory."""
    return array[..., np.newaxis].view(array.real.dtype) if array.dtype.kind == "c" else array


def _checked(given: Sequence[Any]) -> list[Tensor]:
    """The inputs that require gradients.

    Raises:
        ValueError: there are none.
    """
    found = [t for t in given if isinstance(t, Tensor) and t.requires_grad]
    if not found:
        raise ValueError(
            "gradcheck expects at least one input tensor to require gradient, but none of the them have "
            "requires_grad=True."
        )
    return found


def _warn_of_others(given: Sequence[Any]) -> None:
    for i, t in enumerate(given):
        if isinstance(t, Tensor) and t.requires_grad and t.dtype not in (dtypes.float64, dtypes.complex128):
            warnings.warn(
                f"Input #{i} requires gradient and is not a double precision floating point or complex. This check "
                "will likely fail if all the inputs are not of double precision floating point or complex. ",
                stacklevel=3,
            )


def _check_input(func: Callable[..., Any], given: tuple[Any, ...], t: Tensor, at: int, limits: _Limits) -> None:
    """Raises:
    GradcheckError: the gradients of that input are others, or differ from one backward pass to the next.
    """
    for output, numerical in enumerate(_numerical(func, given, t, limits.eps)):
        analytical = _analytical(func, given, t, output)
        again = _analytical(func, given, t, output)
        if analytical.size and np.abs(analytical - again).max() > limits.nondet_tol:
            raise GradcheckError(
                "Backward is not reentrant, i.e., running backward with same input and grad_output multiple times "
                "gives different values."
            )
        if not np.allclose(analytical, numerical, limits.rtol, limits.atol, equal_nan=True):
            texts = [tensor(jacobian, dtype=t.dtype.to_real(), device="cpu") for jacobian in (numerical, analytical)]
            raise GradcheckError(
                f"Jacobian mismatch for output {output} with respect to input {at},\n"
                f"numerical:{texts[0]}\nanalytical:{texts[1]}\n"
            )


def _outputs(func: Callable[..., Any], given: tuple[Any, ...]) -> list[Tensor]:
    found = func(*given)
    several = found if isinstance(found, tuple | list) else (found,)
    return [_parts(t) for t in several if isinstance(t, Tensor) and t.dtype.is_inexact]


def _values(func: Callable[..., Any], given: tuple[Any, ...]) -> list[np.ndarray]:
    return [t.detach().numpy().astype(np.float64).reshape(-1) for t in _outputs(func, given)]


def _numerical(func: Callable[..., Any], given: tuple[Any, ...], t: Tensor, eps: float) -> list[np.ndarray]:
    """For each output the differences, a row for each element of t."""
    elements = _numbers(t.data.numpy())
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
    found = np.zeros((t.numel() * (1 + t.dtype.is_complex), result.numel()))
    if not result.requires_grad:
        return found
    for i in range(result.numel()):
        one = np.zeros(result.numel())
        one[i] = 1
        seed = result.new_tensor(one.tolist()).reshape(result.shape)
        (g,) = gradients_of(result, t, seed, retain_graph=True, allow_unused=True)
        if g is not None:
            found[:, i] = _numbers(g.detach().resolve_conj().numpy()).reshape(-1)
    return found
