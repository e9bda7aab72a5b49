"""Convolutions as CUDA does them: sums of float16 are in float32, and results are rounded once; channels are last where
those of an operand are, without elements too.

The host has kernels of its own for them; their gradients take some eighty times as long as those of float32, and where
a processor has no arithmetic of 16-bit floats their results do, too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch._prims_common import suggest_memory_format

aten = torch.ops.aten

_forward = aten.convolution.default
_backward = aten.convolution_backward.default


def _convolved(input: Tensor, weight: Tensor, bias: Tensor | None, *setting: Any) -> Tensor:  # noqa: A002 (PyTorch's)
    if not _are_half(input, weight):
        return _ordered(_forward._op(input, weight, bias, *setting), input, weight)
    wide = None if bias is None else bias.float()
    return _forward(input.float(), weight.float(), wide, *setting).half()


def _gradients(
    grad_out: Tensor,
    input: Tensor,  # noqa: A002
    weight: Tensor,
    *setting: Any,
) -> Sequence[Tensor | None]:
    if not _are_half(grad_out, input, weight):
        made = _backward._op(grad_out, input, weight, *setting)
        return (*(_ordered(gradient, input, weight) for gradient in made[:2]), made[2])
    made = _backward(grad_out.float(), input.float(), weight.float(), *setting)
    return tuple(None if gradient is None else gradient.half() for gradient in made)


def _ordered(made: Tensor | None, *operands: Tensor) -> Tensor | None:
    """Orders a result without elements as the host and cuDNN do one with elements; PyTorch knows its shape alone."""
    if made is None or not made.is_meta:
        return made
    orders = [suggest_memory_format(operand) for operand in operands]
    return made.to(memory_format=max(orders, key=lambda order: order is not torch.contiguous_format))


def _are_half(*tensors: Tensor) -> bool:
    """Says whether all are of float16; whether dtypes fit together is the host's kernels' to say."""
    return all(tensor.dtype == torch.float16 for tensor in tensors)


KERNELS: dict[Any, Callable[..., Any]] = {_forward: _convolved, _backward: _gradients}
"""Functions that compute them, by operation."""
