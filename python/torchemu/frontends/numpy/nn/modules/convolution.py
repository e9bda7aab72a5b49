"""Convolutions, and what pools."""

from __future__ import annotations

import math
from typing import Any

from torchemu.frontends.numpy._tensor.core import Tensor
from torchemu.frontends.numpy._tensor.creation import empty
from torchemu.frontends.numpy.nn import functional as F  # noqa: N812 (its usual name)
from torchemu.frontends.numpy.nn import init
from torchemu.frontends.numpy.nn._functional.convolution import _edges, for_each
from torchemu.frontends.numpy.nn.modules.module import Module
from torchemu.frontends.numpy.nn.parameter import Parameter

__all__ = ["Conv1d", "Conv2d", "Conv3d", "ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d"]


_MODES = ("zeros", "reflect", "replicate", "circular")


def _check_word(padding: Any, stride: Any) -> None:
    """Raises:
    ValueError: a word that means no padding, or "same" with a stride.
    """
    if not isinstance(padding, str):
        return
    if padding not in ("same", "valid"):
        raise ValueError(f"Invalid padding string '{padding}', should be one of {{'same', 'valid'}}")
    if padding == "same" and any(s != 1 for s in (stride if isinstance(stride, tuple | list) else (stride,))):
        raise ValueError("padding='same' is not supported for strided convolutions")


class _Convolution(Module):
    """What convolutions have in common.

    Args:
        channels: of the input and the result.
        window: kernel_size, stride, padding, dilation and output_padding.
        parts: groups and padding_mode.
        bias: whether there is one.
        where: device and dtype.

    Attributes:
        weight: (out_channels, in_channels/groups, *kernel_size), transposed the other way round; at first uniform in
            ±1/√(the elements that one output needs).
        bias: (out_channels), at first as the weight; or None.
    """

    _ndim: int
    _transposed = False

    def __init__(
        self, channels: tuple[int, int], window: tuple[Any, ...], parts: tuple[int, str], bias: bool, **where: Any
    ) -> None:
        super().__init__()
        self.in_channels, self.out_channels = channels
        self.groups, self.padding_mode = parts
        options = dict(zip(("kernel_size", "stride", "padding", "dilation", "output_padding"), window, strict=True))
        if self.groups <= 0:
            raise ValueError("groups must be a positive integer")
        for name, count in (("in_channels", channels[0]), ("out_channels", channels[1])):
            if count % self.groups:
                raise ValueError(f"{name} must be divisible by groups")
        if self.padding_mode not in _MODES:
            raise ValueError(f"padding_mode must be one of {set(_MODES)}, but got padding_mode='{self.padding_mode}'")
        _check_word(options["padding"], options["stride"])
        if self.padding_mode != "zeros" and self._transposed:
            raise ValueError(f'Only "zeros" padding mode is supported for {type(self).__name__}')
        for name, value in options.items():
            setattr(self, name, value if isinstance(value, str) else for_each(value, self._ndim, name))
        first, second = channels if self._transposed else (channels[1], channels[0])
        self.weight = Parameter(empty((first, second // self.groups, *self.kernel_size), **where))
        self.register_parameter("bias", Parameter(empty(channels[1], **where)) if bias else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws new parameters."""
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        if self.bias is not None:
            seen = math.prod(self.weight.shape[1:])
            if seen:
                init.uniform_(self.bias, -1 / math.sqrt(seen), 1 / math.sqrt(seen))

    def extra_repr(self) -> str:
        """The sizes and what is not as usual."""
        parts = [f"{self.in_channels}, {self.out_channels}", f"kernel_size={self.kernel_size}", f"stride={self.stride}"]
        usual = (0,) * self._ndim
        parts += [f"padding={self.padding}"] * (self.padding != usual)
        parts += [f"dilation={self.dilation}"] * (self.dilation != (1,) * self._ndim)
        parts += [f"output_padding={self.output_padding}"] * (self.output_padding != usual)
        parts += [f"groups={self.groups}"] * (self.groups != 1) + ["bias=False"] * (self.bias is None)
        parts += [f"padding_mode={self.padding_mode}"] * (self.padding_mode != "zeros")
        return ", ".join(parts)


class _Conv(_Convolution):
    """The sums of products of a kernel with what it sees.

    Args:
        in_channels, out_channels: of the input and the result.
        kernel_size, stride, padding, dilation: one number, or one for each dimension; padding also "same" or "valid".
        groups: how many parts of the channels have nothing to do with each other.
        bias: whether there is one.
        padding_mode: "zeros", "reflect", "replicate", or "circular".
        device, dtype: of the parameters.
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Any,
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        channels, window = (in_channels, out_channels), (kernel_size, stride, padding, dilation, 0)
        super().__init__(channels, window, (groups, padding_mode), bias, device=device, dtype=dtype)

    def forward(self, input: Tensor) -> Tensor:  # noqa: A002
        """(N, out_channels, …) of (N, in_channels, …)."""
        function = (F.conv1d, F.conv2d, F.conv3d)[self._ndim - 1]
        padding = self.padding
        if self.padding_mode != "zeros":
            edges = _edges(padding, self.kernel_size, self.stride, self.dilation)
            input, padding = F.pad(input, [n for edge in reversed(edges) for n in edge], self.padding_mode), 0  # noqa: A001
        return function(input, self.weight, self.bias, self.stride, padding, self.dilation, self.groups)


class _ConvTransposed(_Convolution):
    """What makes a larger input of a smaller one, as the gradient of a convolution does.

    Args:
        in_channels, out_channels: of the input and the result.
        kernel_size, stride, padding, output_padding, dilation: one number, or one for each dimension.
        groups: how many parts of the channels have nothing to do with each other.
        bias: whether there is one.
        padding_mode: "zeros".
        device, dtype: of the parameters.
    """

    _transposed = True

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Any,
        stride: Any = 1,
        padding: Any = 0,
        output_padding: Any = 0,
        groups: int = 1,
        bias: bool = True,
        dilation: Any = 1,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        channels, window = (in_channels, out_channels), (kernel_size, stride, padding, dilation, output_padding)
        super().__init__(channels, window, (groups, padding_mode), bias, device=device, dtype=dtype)

    def forward(self, input: Tensor) -> Tensor:  # noqa: A002
        """(N, out_channels, …) of (N, in_channels, …)."""
        function = (F.conv_transpose1d, F.conv_transpose2d, F.conv_transpose3d)[self._ndim - 1]
        more = (self.output_padding, self.groups, self.dilation)
        return function(input, self.weight, self.bias, self.stride, self.padding, *more)


class Conv1d(_Conv):
    """A convolution of (N, C, L)."""

    _ndim = 1


class Conv2d(_Conv):
    """A convolution of (N, C, H, W)."""

    _ndim = 2


class Conv3d(_Conv):
    """A convolution of (N, C, D, H, W)."""

    _ndim = 3


class ConvTranspose1d(_ConvTransposed):
    """A transposed convolution of (N, C, L)."""

    _ndim = 1


class ConvTranspose2d(_ConvTransposed):
    """A transposed convolution of (N, C, H, W)."""

    _ndim = 2


class ConvTranspose3d(_ConvTransposed):
    """A transposed convolution of (N, C, D, H, W)."""

    _ndim = 3
