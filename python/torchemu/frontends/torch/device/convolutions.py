"""Convolutions of float16 as CUDA does them: sums are in float32, and results are rounded once.

The host has kernels of its own for them; their gradients take some eighty times as long as those of float32, and where
a processor has no arithmetic of 16-bit floats their results do, too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

aten = torch.ops.aten

_forward = aten.convolution.default
_backward = aten.convolution_backward.default


def _convolved(input: Tensor, weight: Tensor, bias: Tensor | None, *setting: Any) -> Tensor:  # noqa: A002 (PyTorch's)
    if not _are_half(input, weight):
        return _forward._op(input, weight, bias, *setting)
    wide = None if bias is None else bias.float()
    return _forward(input.float(), weight.float(), wide, *setting).half()


def _gradients(
    grad_out: Tensor,
    input: Tensor,  # noqa: A002
    weight: Tensor,
    *setting: Any,
) -> Sequence[Tensor | None]:
    if not _are_half(grad_out, input, weight):
        return _backward._op(grad_out, input, weight, *setting)
    made = _backward(grad_out.float(), input.float(), weight.float(), *setting)
    return tuple(None if gradient is None else gradient.half() for gradient in made)


def _are_half(*tensors: Tensor) -> bool:
    """Says whether all are of float16; whether dtypes fit together is the host's kernels' to say."""
    return all(tensor.dtype == torch.float16 for tensor in tensors)


KERNELS: dict[Any, Callable[..., Any]] = {_forward: _convolved, _backward: _gradients}
"""Functions that compute them, by operation."""
