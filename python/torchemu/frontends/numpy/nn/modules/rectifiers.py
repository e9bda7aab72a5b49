"""Activations that are made of parts; see torch.nn.functional for what each calculates."""

from __future__ import annotations

import warnings
from typing import Any

from torchemu.frontends.numpy._tensor.core import Tensor
from torchemu.frontends.numpy._tensor.creation import full
from torchemu.frontends.numpy.nn import functional as F  # noqa: N812 (its usual name)
from torchemu.frontends.numpy.nn.modules.activation import _AlongDimension, _InPlace
from torchemu.frontends.numpy.nn.modules.module import Module
from torchemu.frontends.numpy.nn.parameter import Parameter

__all__ = [
    "CELU",
    "ELU",
    "GLU",
    "SELU",
    "Hardshrink",
    "Hardsigmoid",
    "Hardswish",
    "Hardtanh",
    "LeakyReLU",
    "LogSigmoid",
    "Mish",
    "PReLU",
    "RReLU",
    "ReLU6",
    "Softmax2d",
    "Softmin",
    "Softshrink",
    "Softsign",
    "Tanhshrink",
    "Threshold",
]


class LeakyReLU(Module):
    """x, and below zero negative_slope·x.

    Args:
        negative_slope: the slope.
        inplace: change the argument itself.
    """

    def __init__(self, negative_slope: float = 0.01, inplace: bool = False) -> None:
        super().__init__()
        self.negative_slope, self.inplace = negative_slope, inplace

    def forward(self, input: Tensor) -> Tensor:  # noqa: A002
        """The same shape."""
        return F.leaky_relu(input, self.negative_slope, self.inplace)

    def extra_repr(self) -> str:
        """The slope."""
        return f"negative_slope={self.negative_slope}{', inplace=True' if self.inplace else ''}"


class _WithAlpha(Module):
    """An activation with a factor for what is below zero.

    Args:
        alpha: the factor.
        inplace: change the argument itself.
    """

    def __init__(self, alpha: float = 1.0, inplace: bool = False) -> None:
        super().__init__()
        self.alpha, self.inplace = alpha, inplace

    def extra_repr(self) -> str:
        """The factor."""
        return f"alpha={self.alpha}{', inplace=True' if self.inplace else ''}"


class ELU(_WithAlpha):
    """x, and below zero alpha·(eˣ - 1)."""

    def forward(self, input: Tensor) -> Tensor:  # noqa: A002
        """The same shape."""
        return F.elu(input, self.alpha, self.inplace)


class CELU(_WithAlpha):
    """x, and below zero alpha·(e^(x/alpha) - 1)."""

    def forward(self, input: Tensor) -> Tensor:  # noqa: A002
        """The same shape."""
        return F.celu(input, self.alpha, self.inplace)


class SELU(_InPlace):
    """ELU times a factor, with which means stay 0 and variances 1."""

    def forward(self, input: Tensor) -> Tensor:  # noqa: A002
        """The same shape."""
        return F.selu(input, self.inplace)


class Hardtanh(Module):
    """x, moved into [min_val, max_val].

    Args:
        min_val, max_val: the bounds.
        inplace: change the argument itself.
        min_value, max_value: what the bounds were once called.

    Raises:
        AssertionError: they are the wrong way round.
    """

    def __init__(
        self,
        min_val: float = -1.0,
        max_val: float = 1.0,
        inplace: bool = False,
        min_value: float | None = None,
        max_value: float | None = None,
    ) -> None:
        super().__init__()
        for name, value in (("min", min_value), ("max", max_value)):
            if value is not None:
                text = f"keyword argument `{name}_value` is deprecated and rename to `{name}_val`"
                warnings.warn(text, FutureWarning, stacklevel=2)
        self.min_val = min_val if min_value is None else min_value
        self.max_val = max_val if max_value is None else max_value
        self.inplace = inplace
        if self.max_val <= self.min_val:
            raise AssertionError("max_val must be larger than min_val")

    def forward(self, input: Tensor) -> Tensor:  # noqa: A002
        """The same shape."""
        return F.hardtanh(input, self.min_val, self.max_val, self.inplace)

    def extra_repr(self) -> str:
        """The bounds."""
        return f"min_val={self.min_val}, max_val={self.max_val}{', inplace=True' if self.inplace else ''}"


class ReLU6(Hardtanh):
    """x, moved into [0, 6].

    Args:
        inplace: change the argument itself.
    """

    def __init__(self, inplace: bool = False) -> None:
        super().__init__(0.0, 6.0, inplace)

    def extra_repr(self) -> str:
        """Whether it changes the argument."""
        return "inplace=True" if self.inplace else ""


class Threshold(Module):
    """x where it is above a threshold, else a value.

    Args:
        threshold, value: those.
        inplace: change the argument itself.
    """

    def __init__(self, threshold: float, value: float, inplace: bool = False) -> None:
        super().__init__()
        self.threshold, self.value, self.inplace = threshold, value, inplace

    def forward(self, input: Tensor) -> Tensor:  # noqa: A002
        """The same shape."""
        return F.threshold(input, self.threshold, self.value, self.inplace)

    def extra_repr(self) -> str:
        """The threshold and the value."""
        return f"threshold={self.threshold}, value={self.value}{', inplace=True' if self.inplace else ''}"


class _Shrink(Module):
    """What moves x to 0, or makes it 0, near it.

    Args:
        lambd: how near.
    """

    def __init__(self, lambd: float = 0.5) -> None:
        super().__init__()
        self.lambd = lambd

    def extra_repr(self) -> str:
        """How near."""
        return str(self.lambd)


class Hardshrink(_Shrink):
    """x, and 0 within lambd of it."""

    def forward(self, input: Tensor) -> Tensor:  # noqa: A002
        """The same shape."""
        return F.hardshrink(input, self.lambd)


class Softshrink(_Shrink):
    """x moved towards 0 by lambd."""

    def forward(self, input: Tensor) -> Tensor:  # noqa: A002
        """The same shape."""
        return F.softshrink(input, self.lambd)


class PReLU(Module):
    """x, and below zero weight·x.

    Args:
        num_parameters: how many weights: one, or one for each channel.
        init: what they are at first.
        device, dtype: of the weights.
    """

    def __init__(self, num_parameters: int = 1, init: float = 0.25, device: Any = None, dtype: Any = None) -> None:
        super().__init__()
        self.num_parameters, self.init = num_parameters, init
        self.weight = Parameter(full((num_parameters,), init, device=device, dtype=dtype))

    def reset_parameters(self) -> None:
        """Makes the weights what they were at first."""
        self.weight.detach().fill_(self.init)

    def forward(self, input: Tensor) -> Tensor:  # noqa: A002
        """The same shape."""
        return F.prelu(input, self.weight)

    def extra_repr(self) -> str:
        """How many weights."""
        return f"num_parameters={self.num_parameters}"


class GLU(Module):
    """The first half of a dimension times the sigmoid of the second.

    Args:
        dim: the dimension.
    """

    def __init__(self, dim: int = -1) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, input: Tensor) -> Tensor:  # noqa: A002
        """Half as much."""
        return F.glu(input, self.dim)

    def extra_repr(self) -> str:
        """The dimension."""
        return f"dim={self.dim}"


class Softmin(_AlongDimension):
    """Softmax of -x."""

    def forward(self, input: Tensor) -> Tensor:  # noqa: A002
        """The same shape."""
        return F.softmin(input, self.dim, _stacklevel=5)


class Softmax2d(Module):
    """Softmax along the channels of (N, C, H, W) or (C, H, W)."""

    def forward(self, input: Tensor) -> Tensor:  # noqa: A002
        """The same shape."""
        if input.dim() not in (3, 4):
            raise ValueError(f"Softmax2d: expected input to be 3D or 4D, got {input.dim()}D instead")
        return F.softmax(input, -3)


class Hardsigmoid(_InPlace):
    """(x + 3)/6, moved into [0, 1]."""

    def forward(self, input: Tensor) -> Tensor:  # noqa: A002
        """The same shape."""
        return F.hardsigmoid(input, self.inplace)


class Hardswish(_InPlace):
    """x·hardsigmoid(x)."""

    def forward(self, input: Tensor) -> Tensor:  # noqa: A002
        """The same shape."""
        return F.hardswish(input, self.inplace)


class Mish(_InPlace):
    """x·tanh(log(1+eˣ))."""

    def forward(self, input: Tensor) -> Tensor:  # noqa: A002
        """The same shape."""
        return F.mish(input, self.inplace)


class LogSigmoid(Module):
    """log(1/(1+e⁻ˣ)), exact where that is tiny."""

    def forward(self, input: Tensor) -> Tensor:  # noqa: A002
        """The same shape."""
        return F.logsigmoid(input)


class Softsign(Module):
    """x/(1+|x|)."""

    def forward(self, input: Tensor) -> Tensor:  # noqa: A002
        """The same shape."""
        return F.softsign(input)


class Tanhshrink(Module):
    """x - tanh(x)."""

    def forward(self, input: Tensor) -> Tensor:  # noqa: A002
        """The same shape."""
        return F.tanhshrink(input)


class RReLU(Module):
    """x, and below zero x times a number between two: in training a random one, else their mean.

    Args:
        lower, upper: the two.
        inplace: change the argument itself.
    """

    def __init__(self, lower: float = 1.0 / 8, upper: float = 1.0 / 3, inplace: bool = False) -> None:
        super().__init__()
        self.lower, self.upper, self.inplace = lower, upper, inplace

    def forward(self, input: Tensor) -> Tensor:  # noqa: A002
        """The same shape."""
        return F.rrelu(input, self.lower, self.upper, self.training, self.inplace)

    def extra_repr(self) -> str:
        """The numbers."""
        return f"lower={self.lower}, upper={self.upper}{', inplace=True' if self.inplace else ''}"
