"""Linear layers."""

from __future__ import annotations

import math
from typing import Any

from torchemu.frontends.numpy._tensor.core import Tensor
from torchemu.frontends.numpy._tensor.creation import empty
from torchemu.frontends.numpy.nn import functional as F  # noqa: N812 (its usual name)
from torchemu.frontends.numpy.nn import init
from torchemu.frontends.numpy.nn.modules.module import Module
from torchemu.frontends.numpy.nn.parameter import Parameter

__all__ = ["Linear"]


class Linear(Module):
    """input @ weightᵀ + bias.

    Args:
        in_features, out_features: the sizes of the last dimension of what it is given and of what it returns.
        bias: whether it has one.
        device, dtype: of the parameters.

    Attributes:
        weight: (out_features, in_features), at first uniform in ±1/√in_features.
        bias: (out_features), at first uniform in ±1/√in_features; or None.
    """

    def __init__(
        self, in_features: int, out_features: int, bias: bool = True, device: Any = None, dtype: Any = None
    ) -> None:
        super().__init__()
        self.in_features, self.out_features = in_features, out_features
        self.weight = Parameter(empty(out_features, in_features, device=device, dtype=dtype))
        self.register_parameter("bias", Parameter(empty(out_features, device=device, dtype=dtype)) if bias else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Gives the parameters new numbers."""
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        if self.bias is not None:
            bound = 1 / math.sqrt(self.in_features) if self.in_features > 0 else 0
            init.uniform_(self.bias, -bound, bound)

    def forward(self, input: Tensor) -> Tensor:  # noqa: A002
        """(…, in_features) → (…, out_features)."""
        return F.linear(input, self.weight, self.bias)

    def extra_repr(self) -> str:
        """The sizes, and whether there is a bias."""
        return f"in_features={self.in_features}, out_features={self.out_features}, bias={self.bias is not None}"
