"""Upsampling, and channels or columns that become elements; see torch.nn.functional for what each calculates."""

from __future__ import annotations

from typing import Any

from torchemu.frontends.numpy._tensor.core import Tensor
from torchemu.frontends.numpy.nn import functional as F  # noqa: N812 (its usual name)
from torchemu.frontends.numpy.nn.modules.module import Module

__all__ = [
    "ChannelShuffle",
    "Fold",
    "PixelShuffle",
    "PixelUnshuffle",
    "Unfold",
    "Upsample",
    "UpsamplingBilinear2d",
    "UpsamplingNearest2d",
]


class Upsample(Module):
    """More or fewer elements in each dimension.

    Args:
        size, scale_factor, mode, align_corners, recompute_scale_factor: those of torch.nn.functional.interpolate.
    """

    def __init__(
        self,
        size: Any = None,
        scale_factor: Any = None,
        mode: str = "nearest",
        align_corners: bool | None = None,
        recompute_scale_factor: bool | None = None,
    ) -> None:
        super().__init__()
        self.name = type(self).__name__
        self.size = tuple(map(int, size)) if isinstance(size, list | tuple) else size
        several = isinstance(scale_factor, list | tuple)
        self.scale_factor = (
            tuple(map(float, scale_factor)) if several else float(scale_factor) if scale_factor else None
        )
        self.mode, self.align_corners = mode, align_corners
        self.recompute_scale_factor = recompute_scale_factor

    def forward(self, input: Tensor) -> Tensor:  # noqa: A002
        """(N, C, …) of another size."""
        options = (self.mode, self.align_corners, self.recompute_scale_factor)
        return F.interpolate(input, self.size, self.scale_factor, *options)

    def extra_repr(self) -> str:
        """How many, and the mode."""
        how_many = f"size={self.size}" if self.scale_factor is None else f"scale_factor={self.scale_factor}"
        return f"{how_many}, mode={self.mode!r}"


class UpsamplingNearest2d(Upsample):
    """Upsample with mode="nearest" of two dimensions."""

    def __init__(self, size: Any = None, scale_factor: Any = None) -> None:
        super().__init__(size, scale_factor, mode="nearest")


class UpsamplingBilinear2d(Upsample):
    """Upsample with mode="bilinear" and align_corners."""

    def __init__(self, size: Any = None, scale_factor: Any = None) -> None:
        super().__init__(size, scale_factor, mode="bilinear", align_corners=True)


class PixelShuffle(Module):
    """(…, C·r², H, W) → (…, C, H·r, W·r).

    Args:
        upscale_factor: r.
    """

    def __init__(self, upscale_factor: int) -> None:
        super().__init__()
        self.upscale_factor = upscale_factor

    def forward(self, input: Tensor) -> Tensor:  # noqa: A002
        """(…, C, H·r, W·r)."""
        return F.pixel_shuffle(input, self.upscale_factor)

    def extra_repr(self) -> str:
        """The factor."""
        return f"upscale_factor={self.upscale_factor}"


class PixelUnshuffle(Module):
    """(…, C, H·r, W·r) → (…, C·r², H, W).

    Args:
        downscale_factor: r.
    """

    def __init__(self, downscale_factor: int) -> None:
        super().__init__()
        self.downscale_factor = downscale_factor

    def forward(self, input: Tensor) -> Tensor:  # noqa: A002
        """(…, C·r², H, W)."""
        return F.pixel_unshuffle(input, self.downscale_factor)

    def extra_repr(self) -> str:
        """The factor."""
        return f"downscale_factor={self.downscale_factor}"


class ChannelShuffle(Module):
    """Spreads the channels of each group over all.

    Args:
        groups: how many groups.
    """

    def __init__(self, groups: int) -> None:
        super().__init__()
        self.groups = groups

    def forward(self, input: Tensor) -> Tensor:  # noqa: A002
        """(N, C, …) of the same shape."""
        return F.channel_shuffle(input, self.groups)

    def extra_repr(self) -> str:
        """The groups."""
        return f"groups={self.groups}"


class Unfold(Module):
    """What a window sees from each of its places, as columns.

    Args:
        kernel_size, dilation, padding, stride: of the window: one number, or one for each dimension.
    """

    def __init__(self, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1) -> None:
        super().__init__()
        self.kernel_size, self.dilation, self.padding, self.stride = kernel_size, dilation, padding, stride

    def forward(self, input: Tensor) -> Tensor:  # noqa: A002
        """(N, C, H, W) → (N, C·elements of the window, places)."""
        return F.unfold(input, self.kernel_size, self.dilation, self.padding, self.stride)

    def extra_repr(self) -> str:
        """The window."""
        return f"kernel_size={self.kernel_size}, dilation={self.dilation}, padding={self.padding}, stride={self.stride}"


class Fold(Unfold):
    """The sums of what a window has seen, where it was.

    Args:
        output_size: (H, W).
        kernel_size, dilation, padding, stride: of the window: one number, or one for each dimension.
    """

    def __init__(
        self, output_size: Any, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1
    ) -> None:
        super().__init__(kernel_size, dilation, padding, stride)
        self.output_size = output_size

    def forward(self, input: Tensor) -> Tensor:  # noqa: A002
        """(N, C·elements of the window, places) → (N, C, H, W)."""
        return F.fold(input, self.output_size, self.kernel_size, self.dilation, self.padding, self.stride)

    def extra_repr(self) -> str:
        """The sizes and the window."""
        return f"output_size={self.output_size}, {super().extra_repr()}"
