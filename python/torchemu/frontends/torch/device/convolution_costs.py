"""Kernels of convolutions and of their gradients, as the core has them.

They are products with a gathered operand, and conversions of images that lie in another order than these want. PyTorch
has kernels of its own for biases.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from torchemu.frontends.torch.device.ground import go
from torchemu.frontends.torch.device.kernel_costs import DTYPES, Kernels, listed


def kernels(name: str, rounds: bool, args: Sequence[Any], out: Any) -> Kernels:
    """Returns the kernels of a call; none where it is no convolution, or the topology says nothing of them.

    Args:
        rounds: operands of float32 may be rounded.
    """
    if name == "convolution":
        images, weight, bias, stride, _, _, turned, _, groups = args
        of = _Convolution(images, weight, out, stride, turned, groups)
        made = of.kernels(name, "forward", rounds)
        return made + _with_bias(out, bias) if made and bias is not None else made
    if name != "convolution_backward":
        return ()
    grad, images, weight, _, stride, _, _, turned, _, groups, (by_images, by_weights, by_bias) = args
    of = _Convolution(images, weight, grad, stride, turned, groups)
    made = of.kernels(name, "data", rounds) if by_images else ()
    if by_weights:
        made += of.kernels(name, "weight", rounds)
    known = made or of.kernels(name, "weight", rounds)
    return made + _of_bias(grad) if known and by_bias else made


def _with_bias(result: Tensor, bias: Tensor) -> Kernels:
    """Returns what adds a bias: a kernel of its own, that broadcasts."""
    return (("add_", 2 * result.nbytes + bias.nbytes, result.numel(), "strided"),)


def _of_bias(grad: Tensor) -> Kernels:
    """Returns what adds up the gradient by a bias, in dimensions that are not the last."""
    return (("sum", grad.nbytes + grad.shape[1] * grad.itemsize, grad.numel(), "strided"),)


_TURNED = {"forward": "data", "data": "forward", "weight": "weight"}
"""The passes of transposed convolutions, by those of the convolutions that they are the gradients of."""


class _Convolution(NamedTuple):
    """A convolution, or a transposed one."""

    images: Tensor
    weight: Tensor
    result: Tensor
    stride: Sequence[int]
    turned: bool
    groups: int

    def kernels(self, name: str, of: str, rounds: bool) -> Kernels:
        """Returns the kernels of one of its passes: forward, data or weight."""
        dtype = DTYPES.get(self.images.dtype)
        if dtype is None or 0 in (*self.images.shape, *self.weight.shape, *self.result.shape):
            return ()
        large, small = (self.result, self.images) if self.turned else (self.images, self.result)
        dims = self.images.dim() - 2
        said = {
            "Pass": _TURNED[of] if self.turned else of, "DType": dtype, "Rounded": rounds,
            "Batch": large.shape[0], "Inner": large.shape[1], "Outer": small.shape[1],
            "Side": math.prod(large.shape[2:]), "Result": math.prod(small.shape[2:]),
            "Taps": math.prod(self.weight.shape[2:]),
            "Strides": math.prod(self.stride) if len(self.stride) == dims else self.stride[0] ** dims,
            "Groups": self.groups, "Last": _is_channels_last(self.images) or _is_channels_last(self.weight),
        }  # fmt: skip
        return listed(go.ConvolutionCosts, name, said)


_LAST = {4: torch.channels_last, 5: torch.channels_last_3d}


def _is_channels_last(images: Tensor) -> bool:
    """Says whether the channels of an element lie side by side, and it is not the same for them to lie otherwise."""
    order = _LAST.get(images.dim())
    return order is not None and images.is_contiguous(memory_format=order) and not images.is_contiguous()
