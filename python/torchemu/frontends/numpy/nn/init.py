"""torch.nn.init: filling tensors with what parameters begin with. Random numbers are the rank's, or a generator's."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable

from torchemu.frontends.numpy._absent import lacks
from torchemu.frontends.numpy._grad_mode import no_grad
from torchemu.frontends.numpy._tensor.core import Tensor
from torchemu.frontends.numpy._tensor.generator import Generator

_GAINS = {
    **dict.fromkeys(("linear", "conv1d", "conv2d", "conv3d", "sigmoid"), 1.0),
    **dict.fromkeys(("conv_transpose1d", "conv_transpose2d", "conv_transpose3d"), 1.0),
    "tanh": 5 / 3,
    "relu": math.sqrt(2),
    "selu": 3 / 4,
}


def calculate_gain(nonlinearity: str, param: float | None = None) -> float:
    """By what a layer's weights are to be multiplied so that a nonlinearity behind it leaves the variance as it is.

    Args:
        nonlinearity: its name.
        param: of leaky_relu: the slope for negative numbers, 0.01 unless given.

    Raises:
        ValueError: there is no such nonlinearity; the slope is no number.
    """
    if nonlinearity == "leaky_relu":
        if param is not None and (isinstance(param, bool) or not isinstance(param, int | float)):
            raise ValueError(f"negative_slope {param} not a valid number")
        return math.sqrt(2 / (1 + (0.01 if param is None else param) ** 2))
    if nonlinearity not in _GAINS:
        raise ValueError(f"Unsupported nonlinearity {nonlinearity}")
    return _GAINS[nonlinearity]


def _calculate_fan_in_and_fan_out(tensor: Tensor) -> tuple[int, int]:
    """Returns how many inputs and outputs each element of a weight is one of.

    Raises:
        ValueError: it has fewer than two dimensions.
    """
    if tensor.dim() < 2:
        raise ValueError("Fan in and fan out can not be computed for tensor with fewer than 2 dimensions")
    field = math.prod(tensor.shape[2:])
    return tensor.shape[1] * field, tensor.shape[0] * field


def _calculate_correct_fan(tensor: Tensor, mode: str) -> int:
    modes = ["fan_in", "fan_out"]
    if mode.lower() not in modes:
        raise ValueError(f"Mode {mode} not supported, please use one of {modes}")
    return _calculate_fan_in_and_fan_out(tensor)[modes.index(mode.lower())]


def _filled(fill: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """The same function, not recorded for gradients."""
    return no_grad()(fill)


@_filled
def uniform_(tensor: Tensor, a: float = 0.0, b: float = 1.0, generator: Generator | None = None) -> Tensor:
    """Numbers uniform in [a, b)."""
    return tensor.uniform_(a, b, generator=generator)


@_filled
def normal_(tensor: Tensor, mean: float = 0.0, std: float = 1.0, generator: Generator | None = None) -> Tensor:
    """Normal numbers."""
    return tensor.normal_(mean, std, generator=generator)


@_filled
def constant_(tensor: Tensor, val: float) -> Tensor:
    """The number everywhere."""
    return tensor.fill_(val)


@_filled
def ones_(tensor: Tensor) -> Tensor:
    """Ones."""
    return tensor.fill_(1.0)


@_filled
def zeros_(tensor: Tensor) -> Tensor:
    """Zeros."""
    return tensor.zero_()


def xavier_uniform_(tensor: Tensor, gain: float = 1.0, generator: Generator | None = None) -> Tensor:
    """Uniform numbers with a standard deviation of gain·√(2/(inputs + outputs))."""
    bound = gain * math.sqrt(6 / sum(_calculate_fan_in_and_fan_out(tensor)))
    return uniform_(tensor, -bound, bound, generator)


def xavier_normal_(tensor: Tensor, gain: float = 1.0, generator: Generator | None = None) -> Tensor:
    """Normal numbers with a standard deviation of gain·√(2/(inputs + outputs))."""
    std = gain * math.sqrt(2 / sum(_calculate_fan_in_and_fan_out(tensor)))
    return normal_(tensor, 0.0, std, generator)


def _kaiming_std(tensor: Tensor, a: float, mode: str, nonlinearity: str) -> float:
    """The standard deviation; 0, with a warning, where there is no element."""
    if 0 in tensor.shape:
        warnings.warn("Initializing zero-element tensors is a no-op", stacklevel=3)
        return 0.0
    fan = _calculate_correct_fan(tensor, mode)
    return calculate_gain(nonlinearity, a) / math.sqrt(fan)


def kaiming_uniform_(
    tensor: Tensor,
    a: float = 0,
    mode: str = "fan_in",
    nonlinearity: str = "leaky_relu",
    generator: Generator | None = None,
) -> Tensor:
    """Uniform numbers with a standard deviation of the nonlinearity's gain/√inputs, or outputs in the mode fan_out."""
    bound = math.sqrt(3.0) * _kaiming_std(tensor, a, mode, nonlinearity)
    return uniform_(tensor, -bound, bound, generator)


def kaiming_normal_(
    tensor: Tensor,
    a: float = 0,
    mode: str = "fan_in",
    nonlinearity: str = "leaky_relu",
    generator: Generator | None = None,
) -> Tensor:
    """Normal numbers with a standard deviation of the nonlinearity's gain/√inputs, or outputs in the mode fan_out."""
    return normal_(tensor, 0.0, _kaiming_std(tensor, a, mode, nonlinearity), generator)


__getattr__ = lacks(__name__)
