"""Layer normalization of 16-bit floats as CUDA does it: statistics of float32, and results that are rounded once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

aten = torch.ops.aten

_SHORT = (torch.float16, torch.bfloat16)
_forward = aten.native_layer_norm.default
_backward = aten.native_layer_norm_backward.default


def _wide(x: Tensor | None) -> Tensor | None:
    return None if x is None else x.float()


def _normalized(
    input: Tensor,  # noqa: A002 (PyTorch's name)
    normalized_shape: Sequence[int],
    weight: Tensor | None,
    bias: Tensor | None,
    eps: float,
) -> Any:
    if input.dtype not in _SHORT:
        return _forward._op(input, normalized_shape, weight, bias, eps)
    out, mean, rstd = _forward(input.float(), normalized_shape, _wide(weight), _wide(bias), eps)
    return out.to(input.dtype), mean, rstd


def _gradients(
    grad_out: Tensor,
    input: Tensor,  # noqa: A002
    normalized_shape: Sequence[int],
    mean: Tensor,
    rstd: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    output_mask: Sequence[bool],
) -> Any:
    if input.dtype not in _SHORT:
        return _backward._op(grad_out, input, normalized_shape, mean, rstd, weight, bias, output_mask)
    wide = (_wide(x) for x in (mean, rstd, weight, bias))
    made = _backward(grad_out.float(), input.float(), normalized_shape, *wide, output_mask)
    kinds = (input, input if weight is None else weight, input if bias is None else bias)
    return tuple(None if g is None else g.to(of.dtype) for g, of in zip(made, kinds, strict=True))


KERNELS: dict[Any, Callable[..., Any]] = {_forward: _normalized, _backward: _gradients}
"""What computes them, by the operations."""
