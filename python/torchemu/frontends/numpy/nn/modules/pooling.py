"""Pooling."""

from __future__ import annotations

from typing import Any

from torchemu.frontends.numpy._tensor.core import Tensor
from torchemu.frontends.numpy.nn import functional as F  # noqa: N812 (its usual name)
from torchemu.frontends.numpy.nn._functional.convolution import for_each
from torchemu.frontends.numpy.nn.modules.module import Module

__all__ = [
    "AdaptiveAvgPool1d",
    "AdaptiveAvgPool2d",
    "AdaptiveAvgPool3d",
    "AdaptiveMaxPool1d",
    "AdaptiveMaxPool2d",
    "AdaptiveMaxPool3d",
    "AvgPool1d",
    "AvgPool2d",
    "AvgPool3d",
    "LPPool1d",
    "LPPool2d",
    "LPPool3d",
    "MaxPool1d",
    "MaxPool2d",
    "MaxPool3d",
    "MaxUnpool1d",
    "MaxUnpool2d",
    "MaxUnpool3d",
]


class _MaxPool(Module):
    """The largest of the elements that each place of a window sees.

    Args:
        kernel_size, stride, padding, dilation: of the window: one number, or one for each dimension; stride None: the
            window's size.
        return_indices: whether to return also where they are.
        ceil_mode: whether a window may stick out behind.
    """

    _ndim: int

    def __init__(
        self,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        dilation: Any = 1,
        return_indices: bool = False,
        ceil_mode: bool = False,
    ) -> None:
        super().__init__()
        self.kernel_size, self.stride = kernel_size, kernel_size if stride is None else stride
        self.padding, self.dilation = padding, dilation
        self.return_indices, self.ceil_mode = return_indices, ceil_mode

    def forward(self, input: Tensor) -> Any:  # noqa: A002
        """(N, C, …) of another size."""
        function = (F.max_pool1d, F.max_pool2d, F.max_pool3d)[self._ndim - 1]
        options = (self.padding, self.dilation, self.ceil_mode, self.return_indices)
        return function(input, self.kernel_size, self.stride, *options)

    def extra_repr(self) -> str:
        """The window."""
        return (
            f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}, dilation={self.dilation}, "
            f"ceil_mode={self.ceil_mode}"
        )


class _AvgPool(Module):
    """The mean of the elements that each place of a window sees.

    Args:
        kernel_size, stride, padding: of the window: one number, or one for each dimension; stride None: its size.
        ceil_mode: whether a window may stick out behind.
        count_include_pad: whether padding counts as elements.
        divisor_override: what to divide by in the place of their number.
    """

    _ndim: int

    def __init__(
        self,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
    ) -> None:
        super().__init__()
        self.kernel_size, self.stride = kernel_size, kernel_size if stride is None else stride
        self.padding, self.ceil_mode, self.count_include_pad = padding, ceil_mode, count_include_pad
        self.divisor_override = divisor_override

    def forward(self, input: Tensor) -> Tensor:  # noqa: A002
        """(N, C, …) of another size."""
        function = (F.avg_pool1d, F.avg_pool2d, F.avg_pool3d)[self._ndim - 1]
        options = (self.padding, self.ceil_mode, self.count_include_pad, self.divisor_override)
        return function(input, self.kernel_size, self.stride, *options)

    def extra_repr(self) -> str:
        """The window."""
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class _Adaptive(Module):
    """The means of as many parts of each channel as asked for.

    Args:
        output_size: how many: one number, or one for each dimension; None: all of a dimension.
    """

    _ndim: int

    def __init__(self, output_size: Any) -> None:
        super().__init__()
        self.output_size = output_size

    def forward(self, input: Tensor) -> Tensor:  # noqa: A002
        """(N, C, …) of that size."""
        functions = (F.adaptive_avg_pool1d, F.adaptive_avg_pool2d, F.adaptive_avg_pool3d)
        return functions[self._ndim - 1](input, self.output_size)

    def extra_repr(self) -> str:
        """How many."""
        return f"output_size={self.output_size}"


class _AdaptiveMax(_Adaptive):
    """The largest of as many parts of each channel as asked for.

    Args:
        output_size: how many: one number, or one for each dimension; None: all of a dimension.
        return_indices: whether to return also where they are.
    """

    def __init__(self, output_size: Any, return_indices: bool = False) -> None:
        super().__init__(output_size)
        self.return_indices = return_indices

    def forward(self, input: Tensor) -> Any:  # noqa: A002
        """(N, C, …) of that size."""
        functions = (F.adaptive_max_pool1d, F.adaptive_max_pool2d, F.adaptive_max_pool3d)
        return functions[self._ndim - 1](input, self.output_size, self.return_indices)


class _LPPool(Module):
    """The norm of the elements that each place of a window sees.

    Args:
        norm_type: p of (Σ xᵖ)^(1/p).
        kernel_size, stride: of the window: one number, or one for each dimension; stride None: its size.
        ceil_mode: whether a window may stick out behind.
    """

    _ndim: int

    def __init__(self, norm_type: float, kernel_size: Any, stride: Any = None, ceil_mode: bool = False) -> None:
        super().__init__()
        self.norm_type, self.kernel_size, self.stride, self.ceil_mode = norm_type, kernel_size, stride, ceil_mode

    def forward(self, input: Tensor) -> Tensor:  # noqa: A002
        """(N, C, …) of another size."""
        function = (F.lp_pool1d, F.lp_pool2d, F.lp_pool3d)[self._ndim - 1]
        return function(input, float(self.norm_type), self.kernel_size, self.stride, self.ceil_mode)

    def extra_repr(self) -> str:
        """The norm and the window."""
        return (
            f"norm_type={self.norm_type}, kernel_size={self.kernel_size}, stride={self.stride}, "
            f"ceil_mode={self.ceil_mode}"
        )


class _MaxUnpool(Module):
    """The elements that pooling has chosen, where they were, and zeros.

    Args:
        kernel_size, stride, padding: of the window: one number, or one for each dimension; stride None: its size.
    """

    _ndim: int

    def __init__(self, kernel_size: Any, stride: Any = None, padding: Any = 0) -> None:
        super().__init__()
        self.kernel_size, self.padding = for_each(kernel_size, self._ndim), for_each(padding, self._ndim)
        self.stride = self.kernel_size if stride is None else for_each(stride, self._ndim)

    def forward(self, input: Tensor, indices: Tensor, output_size: Any = None) -> Tensor:  # noqa: A002
        """The elements and where they were → (N, C, …) of the former size, which may have to be told."""
        function = (F.max_unpool1d, F.max_unpool2d, F.max_unpool3d)[self._ndim - 1]
        return function(input, indices, self.kernel_size, self.stride, self.padding, output_size)

    def extra_repr(self) -> str:
        """The window."""
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


def _of(kind: type, ndim: int, name: str) -> Any:
    return type(name, (kind,), {"_ndim": ndim, "__doc__": kind.__doc__, "__module__": __name__})


MaxPool1d, MaxPool2d, MaxPool3d = (_of(_MaxPool, n, f"MaxPool{n}d") for n in (1, 2, 3))
AvgPool1d, AvgPool2d, AvgPool3d = (_of(_AvgPool, n, f"AvgPool{n}d") for n in (1, 2, 3))
AdaptiveAvgPool1d, AdaptiveAvgPool2d, AdaptiveAvgPool3d = (_of(_Adaptive, n, f"AdaptiveAvgPool{n}d") for n in (1, 2, 3))
AdaptiveMaxPool1d, AdaptiveMaxPool2d, AdaptiveMaxPool3d = (
    _of(_AdaptiveMax, n, f"AdaptiveMaxPool{n}d") for n in (1, 2, 3)
)
LPPool1d, LPPool2d, LPPool3d = (_of(_LPPool, n, f"LPPool{n}d") for n in (1, 2, 3))
MaxUnpool1d, MaxUnpool2d, MaxUnpool3d = (_of(_MaxUnpool, n, f"MaxUnpool{n}d") for n in (1, 2, 3))
