"""Gradients that are not to grow too large."""

from __future__ import annotations

import warnings
from collections.abc import Iterable

from torchemu.frontends.numpy._grad_mode import no_grad
from torchemu.frontends.numpy._tensor.core import Tensor
from torchemu.frontends.numpy._tensor.creation import zeros
from torchemu.frontends.numpy._tensor.joining import stack

Tensors = Tensor | Iterable[Tensor]


def _listed(tensors: Tensors) -> list[Tensor]:
    return [tensors] if isinstance(tensors, Tensor) else list(tensors)


@no_grad()
def get_total_norm(
    tensors: Tensors, norm_type: float = 2.0, error_if_nonfinite: bool = False, foreach: bool | None = None
) -> Tensor:
    """The norm of the norms of tensors: that of all their elements as one vector.

    Args:
        tensors: one, or several.
        norm_type: the p of the p-norm.
        error_if_nonfinite: refuse a norm that is infinite or NaN.
        foreach: means nothing here.

    Raises:
        RuntimeError: error_if_nonfinite, and it is.
    """
    listed = _listed(tensors)
    if not listed:
        return zeros(())
    norms = [t.norm(float(norm_type)).to(listed[0].device) for t in listed]
    total = stack(norms).norm(float(norm_type))
    if error_if_nonfinite and not total.isfinite().item():
        raise RuntimeError(
            f"The total norm of order {norm_type} for gradients from `parameters` is non-finite, so it cannot be "
            "clipped. To disable this error and scale the gradients by the non-finite norm anyway, set "
            "`error_if_nonfinite=False`"
        )
    return total


@no_grad()
def clip_grads_with_norm_(
    parameters: Tensors, max_norm: float, total_norm: Tensor, foreach: bool | None = None
) -> None:
    """Multiplies gradients by max_norm/total_norm, where that is below 1. The host does not look at the norm."""
    coefficient = (float(max_norm) / (total_norm + 1e-6)).clamp(max=1.0)
    for p in _listed(parameters):
        if p.grad is not None:
            p.grad.mul_(coefficient.to(p.grad.device))


def clip_grad_norm_(
    parameters: Tensors,
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:
    """Scales gradients so that their norm, as one vector, is at most max_norm.

    Args:
        parameters: whose gradients; those without do not count.
        max_norm: the largest norm.
        norm_type: the p of the p-norm.
        error_if_nonfinite: refuse a norm that is infinite or NaN.
        foreach: means nothing here.

    Returns:
        The norm before.

    Raises:
        RuntimeError: error_if_nonfinite, and it is.
    """
    listed = _listed(parameters)
    total = get_total_norm([p.grad for p in listed if p.grad is not None], norm_type, error_if_nonfinite)
    clip_grads_with_norm_(listed, max_norm, total)
    return total


@no_grad()
def clip_grad_value_(parameters: Tensors, clip_value: float, foreach: bool | None = None) -> None:
    """Moves each element of the gradients into [-clip_value, clip_value]."""
    for p in _listed(parameters):
        if p.grad is not None:
            p.grad.clamp_(min=-float(clip_value), max=float(clip_value))


def clip_grad_norm(
    parameters: Tensors,
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:
    """clip_grad_norm_, as it was once called."""
    warnings.warn(
        "torch.nn.utils.clip_grad_norm is now deprecated in favor of torch.nn.utils.clip_grad_norm_.",
        FutureWarning,
        stacklevel=2,
    )
    return clip_grad_norm_(parameters, max_norm, norm_type, error_if_nonfinite, foreach)
