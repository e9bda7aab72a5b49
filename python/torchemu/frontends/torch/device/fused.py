"""The fused attentions of CUDA, by that of the CPU: what works on operations, as DTensor does, knows these alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from torchemu.frontends.torch.device.places import HOST

aten = torch.ops.aten


_forward = aten._scaled_dot_product_flash_attention_for_cpu.default
_backward = aten._scaled_dot_product_flash_attention_for_cpu_backward.default


def added(mask: Tensor | None, query: Tensor) -> Tensor | None:
    """Returns a mask that says what to add; PyTorch makes one of a mask that says which elements take part."""
    if mask is None or mask.dtype is not torch.bool:
        return mask
    return torch.zeros_like(mask, dtype=query.dtype).masked_fill_(mask.logical_not(), float("-inf"))


def no_dropout(probability: float) -> None:
    if probability:
        raise RuntimeError(
            "scaled_dot_product_attention: a simulated device's fused attention has no dropout; use "
            "torch.nn.attention.sdpa_kernel(SDPBackend.MATH)"
        )


def _number() -> Tensor:
    """Returns a state of random numbers, of which none are drawn."""
    return torch.zeros((), dtype=torch.int64, device=HOST)


def _with_bias(query: Tensor, key: Tensor, value: Tensor, bias: Any, causal: bool, scale: Any) -> tuple[Tensor, Tensor]:
    out, logsumexp = _forward(query, key, value, 0.0, causal, attn_mask=added(bias, query), scale=scale)
    return out, logsumexp


def _flash(
    query: Tensor, key: Tensor, value: Tensor, dropout_p: float = 0.0, is_causal: bool = False,
    return_debug_mask: bool = False, *, scale: Any = None,
) -> tuple[Any, ...]:  # fmt: skip
    *made, _ = _cudnn(query, key, value, None, True, dropout_p, is_causal, scale=scale)
    return *made, torch.empty(0, device=HOST)


def _flash_backward(
    grad: Tensor, query: Tensor, key: Tensor, value: Tensor, out: Tensor, logsumexp: Tensor, cum_q: Any, cum_k: Any,
    max_q: int, max_k: int, dropout_p: float, is_causal: bool, seed: Any, offset: Any, *, scale: Any = None,
) -> Any:  # fmt: skip
    return _backward(grad, query, key, value, out, logsumexp, 0.0, is_causal, scale=scale)


def _efficient(
    query: Tensor, key: Tensor, value: Tensor, bias: Any, compute_log_sumexp: bool, dropout_p: float = 0.0,
    is_causal: bool = False, *, scale: Any = None,
) -> tuple[Any, ...]:  # fmt: skip
    no_dropout(dropout_p)
    return *_with_bias(query, key, value, bias, is_causal, scale), _number(), _number()


def _efficient_backward(
    grad: Tensor, query: Tensor, key: Tensor, value: Tensor, bias: Any, out: Tensor, logsumexp: Tensor, seed: Any,
    offset: Any, dropout_p: float, mask: Any, is_causal: bool = False, *, scale: Any = None,
) -> tuple[Any, ...]:  # fmt: skip
    bias = added(bias, query)
    return *_backward(grad, query, key, value, out, logsumexp, 0.0, is_causal, attn_mask=bias, scale=scale), None


def _cudnn(
    query: Tensor, key: Tensor, value: Tensor, bias: Any, compute_log_sumexp: bool, dropout_p: float = 0.0,
    is_causal: bool = False, return_debug_mask: bool = False, *, scale: Any = None,
) -> tuple[Any, ...]:  # fmt: skip
    no_dropout(dropout_p)
    out, logsumexp = _with_bias(query, key, value, bias, is_causal, scale)
    numbers = [_number() for _ in range(2)]
    return out, logsumexp, None, None, query.shape[2], key.shape[2], *numbers, None


def _cudnn_backward(
    grad: Tensor, query: Tensor, key: Tensor, value: Tensor, out: Tensor, logsumexp: Tensor, seed: Any, offset: Any,
    bias: Any, cum_q: Any, cum_k: Any, max_q: int, max_k: int, dropout_p: float, is_causal: bool, *, scale: Any = None,
) -> Any:  # fmt: skip
    bias = added(bias, query)
    return _backward(grad, query, key, value, out, logsumexp, 0.0, is_causal, attn_mask=bias, scale=scale)


KERNELS: dict[Any, Callable[..., Any]] = {
    aten._scaled_dot_product_flash_attention.default: _flash,
    aten._scaled_dot_product_flash_attention_backward.default: _flash_backward,
    aten._scaled_dot_product_efficient_attention.default: _efficient,
    aten._scaled_dot_product_efficient_attention_backward.default: _efficient_backward,
    aten._scaled_dot_product_cudnn_attention.default: _cudnn,
    aten._scaled_dot_product_cudnn_attention_backward.default: _cudnn_backward,
}
"""Functions that compute them, by operation."""


def of_operations(
    query: Any, key: Any, value: Any, mask: Any, is_causal: bool, scale: Any, enable_gqa: bool
) -> Tensor | None:
    """Returns the attention of DTensors by the operation that CUDA would call; None where none fused is wanted."""
    if enable_gqa and key.shape[-3] != query.shape[-3]:
        times = query.shape[-3] // key.shape[-3]
        key, value = (t.repeat_interleave(times, -3) for t in (key, value))
    allowed = torch.backends.cuda
    if mask is None and allowed.flash_sdp_enabled():
        return aten._scaled_dot_product_flash_attention(query, key, value, 0.0, is_causal, scale=scale)[0]
    if allowed.mem_efficient_sdp_enabled():
        operation = aten._scaled_dot_product_efficient_attention
    elif allowed.cudnn_sdp_enabled() and not allowed.math_sdp_enabled():
        operation = aten._scaled_dot_product_cudnn_attention
    else:
        return None
    mask, grads = added(mask, query), torch.is_grad_enabled()
    out: Tensor = operation(query, key, value, mask, grads, 0.0, is_causal, scale=scale)[0]
    return out
