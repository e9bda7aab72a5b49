"""Normalization of the last dimensions."""

from __future__ import annotations

import numbers
from collections.abc import Sequence
from typing import Any

from torchemu.frontends.numpy._tensor.core import Tensor
from torchemu.frontends.numpy._tensor.creation import empty
from torchemu.frontends.numpy.nn import functional as F  # noqa: N812 (its usual name)
from torchemu.frontends.numpy.nn import init
from torchemu.frontends.numpy.nn.modules.module import Module
from torchemu.frontends.numpy.nn.parameter import Parameter

__all__ = ["LayerNorm"]

Shape = int | Sequence[int]


def _shape(given: Shape) -> tuple[int, ...]:
    return (int(given),) if isinstance(given, numbers.Integral) else tuple(given)  # type: ignore[arg-type]


class LayerNorm(Module):
    """(input - mean)/√(variance + eps)·weight + bias, over the last dimensions.

    Args:
        normalized_shape: the sizes of those dimensions.
        eps: keeps the divisor from zero.
        elementwise_affine: whether there are a weight and a bias.
        bias: whether there is a bias then.
        device, dtype: of the parameters.

    Attributes:
        weight, bias: of normalized_shape, at first ones and zeros; or None.
    """

    def __init__(
        self,
        normalized_shape: Shape,
        eps: float = 1e-5,
        elementwise_affine: bool = True,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.normalized_shape, self.eps = _shape(normalized_shape), eps
        self.elementwise_affine = elementwise_affine
        for name, wanted in {"weight": elementwise_affine, "bias": elementwise_affine and bias}.items():
            made = Parameter(empty(self.normalized_shape, device=device, dtype=dtype)) if wanted else None
            self.register_parameter(name, made)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Makes the weight ones and the bias zeros."""
        if self.weight is not None:
            init.ones_(self.weight)
        if self.bias is not None:
            init.zeros_(self.bias)

    def forward(self, input: Tensor) -> Tensor:  # noqa: A002
        """The same shape."""
        return F.layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        """The shape and the options."""
        return f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}"
