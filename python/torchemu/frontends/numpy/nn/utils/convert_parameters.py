"""Parameters as one vector."""

from __future__ import annotations

from collections.abc import Iterable

from torchemu.frontends.numpy._tensor.core import Tensor
from torchemu.frontends.numpy._tensor.joining import cat
from torchemu.frontends.numpy.nn.modules._members import _typename


def parameters_to_vector(parameters: Iterable[Tensor]) -> Tensor:
    """All elements of the parameters, one after the other."""
    return cat([p.view(-1) for p in parameters])


def vector_to_parameters(vec: Tensor, parameters: Iterable[Tensor]) -> None:
    """Makes the parameters views of a vector of all their elements.

    Raises:
        TypeError: no tensor. RuntimeError: it is too short.
    """
    if not isinstance(vec, Tensor):
        raise TypeError(f"expected torch.Tensor, but got: {_typename(vec)}")
    start = 0
    for p in parameters:
        p.data = vec[start : start + p.numel()].view_as(p).data
        start += p.numel()
