"""Activations, with the arguments that torch.nn.functional gives them; what they calculate is in _tensor."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from torchemu.frontends.numpy._tensor import elementwise, reductions
from torchemu.frontends.numpy._tensor.core import Tensor
from torchemu.frontends.numpy._tensor.pointwise import pointwise_into


def relu(input: Tensor, inplace: bool = False) -> Tensor:  # noqa: A002 (PyTorch's names)
    """max(x, 0); stored in the input itself if inplace."""
    return input.relu_() if inplace else elementwise.relu(input)


def silu(input: Tensor, inplace: bool = False) -> Tensor:  # noqa: A002
    """x·sigmoid(x); stored in the input itself if inplace."""
    return pointwise_into(input, elementwise.UNARY["silu"], (input,)) if inplace else elementwise.silu(input)


def softmax(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None) -> Tensor:  # noqa: A002
    """eˣ / Σ eˣ along a dimension.

    Args:
        input: of floats.
        dim: the dimension; None, with a warning: the first of one or three, else the second.
        dtype: what to convert the elements to first.
    """
    return _along(reductions.softmax, "softmax", input, dim, _stacklevel, dtype)


def log_softmax(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None) -> Tensor:  # noqa: A002
    """The logarithm of softmax, exact where that is tiny; the arguments are the same."""
    return _along(reductions.log_softmax, "log_softmax", input, dim, _stacklevel, dtype)


def _along(
    function: Callable[..., Tensor], name: str, x: Tensor, dim: int | None, stacklevel: int, dtype: Any
) -> Tensor:
    if dim is None:
        warnings.warn(
            f"Implicit dimension choice for {name} has been deprecated. Change the call to include dim=X as an "
            "argument.",
            stacklevel=stacklevel,
        )
        dim = 0 if x.dim() in (0, 1, 3) else 1
    return function(x, dim, dtype)
