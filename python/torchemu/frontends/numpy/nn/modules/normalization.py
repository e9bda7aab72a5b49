"""Normalizations of the last dimensions, and of channels."""

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

__all__ = ["GroupNorm", "LayerNorm", "LocalResponseNorm", "RMSNorm"]

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


class RMSNorm(Module):
    """input/√(mean of squares + eps)·weight, over the last dimensions.

    Args:
        normalized_shape: the sizes of those dimensions.
        eps: keeps the divisor from zero; None: the smallest step of the dtype that is calculated with.
        elementwise_affine: whether there is a weight.
        device, dtype: of the weight.

    Attributes:
        weight: of normalized_shape, at first ones; or None.
    """

    def __init__(
        self,
        normalized_shape: Shape,
        eps: float | None = None,
        elementwise_affine: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.normalized_shape, self.eps = _shape(normalized_shape), eps
        self.elementwise_affine = elementwise_affine
        made = Parameter(empty(self.normalized_shape, device=device, dtype=dtype)) if elementwise_affine else None
        self.register_parameter("weight", made)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Makes the weight ones."""
        if self.weight is not None:
            init.ones_(self.weight)

    def forward(self, input: Tensor) -> Tensor:  # noqa: A002
        """The same shape."""
        return F.rms_norm(input, self.normalized_shape, self.weight, self.eps)

    def extra_repr(self) -> str:
        """The shape and the options."""
        return f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}"


class GroupNorm(Module):
    """(input - mean)/√(variance + eps)·weight + bias, with the means over groups of channels.

    Args:
        num_groups: how many.
        num_channels: of the input; a multiple of it.
        eps: keeps the divisor from zero.
        affine: whether there are a weight and a bias, of num_channels, at first ones and zeros.
        device, dtype: of the parameters.

    Raises:
        ValueError: the channels cannot be divided.
    """

    def __init__(
        self,
        num_groups: int,
        num_channels: int,
        eps: float = 1e-5,
        affine: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        if num_channels % num_groups:
            raise ValueError(f"num_channels ({num_channels}) must be divisible by num_groups ({num_groups})")
        self.num_groups, self.num_channels, self.eps, self.affine = num_groups, num_channels, eps, affine
        for name in ("weight", "bias"):
            made = Parameter(empty(num_channels, device=device, dtype=dtype)) if affine else None
            self.register_parameter(name, made)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Makes the weight ones and the bias zeros."""
        if self.affine:
            init.ones_(self.weight)
            init.zeros_(self.bias)

    def forward(self, input: Tensor) -> Tensor:  # noqa: A002
        """The same shape."""
        return F.group_norm(input, self.num_groups, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        """The sizes and the options."""
        return f"{self.num_groups}, {self.num_channels}, eps={self.eps}, affine={self.affine}"


class LocalResponseNorm(Module):
    """x / (k + alpha·mean of x² over neighbouring channels)^beta.

    Args:
        size: how many channels.
        alpha, beta, k: as above.
    """

    def __init__(self, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> None:
        super().__init__()
        self.size, self.alpha, self.beta, self.k = size, alpha, beta, k

    def forward(self, input: Tensor) -> Tensor:  # noqa: A002
        """The same shape, (N, C, …)."""
        return F.local_response_norm(input, self.size, self.alpha, self.beta, self.k)

    def extra_repr(self) -> str:
        """The numbers."""
        return f"{self.size}, alpha={self.alpha}, beta={self.beta}, k={self.k}"
