"""Attention. PyTorch chooses in C++ how scaled_dot_product_attention is done, where tensors have elements;
for gradients it traces flex_attention, and knows no tensors with names there."""

from __future__ import annotations

import functools
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch._higher_order_ops.flex_attention import math_attention
from torch.nn.attention import SDPBackend, flex_attention, sdpa_kernel

from torchemu.frontends.torch.device import casts, fused, operations, places, products, sequences
from torchemu.frontends.torch.device.patches import Replacements, overridable
from torchemu.frontends.torch.device.places import HOST

_is_meta = torch._C.TensorBase.is_meta.__get__
_FLASH = 1
_choices: dict[Any, int] = {}


def put(replaced: Replacements) -> None:
    """Puts it in place where programs call it."""
    operations.AS_CUDA.update(fused.KERNELS | sequences.KERNELS)
    products.OF_ELEMENTS.update(sequences.FORMULAS)
    original = torch.nn.functional.scaled_dot_product_attention
    replacement = overridable(_attention(original), original)
    replaced.put(torch.nn.functional, "scaled_dot_product_attention", replacement)
    replaced.put(torch._C._nn, "scaled_dot_product_attention", replacement)
    replaced.put(flex_attention, "flex_attention_hop", _flexible(flex_attention.flex_attention_hop))


def _attention(original: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
    @functools.wraps(original)
    def scaled_dot_product_attention(
        query: Any,
        key: Any,
        value: Any,
        attn_mask: Any = None,
        dropout_p: float = 0.0,
        is_causal: bool = False,
        scale: Any = None,
        enable_gqa: bool = False,
    ) -> torch.Tensor:
        where = query.device.type, key.device.type, value.device.type
        if len(set(where)) > 1:
            raise RuntimeError(
                "Expected query, key, and value to have the same device type, but got query.device: "
                f"{query.device} key.device: {key.device} and value.device: {value.device} instead."
            )
        if is_causal and attn_mask is not None and _takes_both(query):
            attn_mask, is_causal = _causal(attn_mask, query, key), False
        call = functools.partial(original, dropout_p=dropout_p, is_causal=is_causal, scale=scale, enable_gqa=enable_gqa)
        if places.is_distributed(query) and query.dim() == 4 and not dropout_p and places.is_simulated(query.device):
            made = fused.of_operations(query, key, value, attn_mask, is_causal, scale, enable_gqa)
            if made is not None:
                return made
        if type(query) is not torch.Tensor or not _is_meta(query) or places.of(query) is None:
            with _kernels_of_host(query), places.made_at(places.of(query)):
                return call(query, key, value, attn_mask)
        if torch.is_autocast_enabled("cuda"):
            (query, key, value, attn_mask), _ = casts.lowered((query, key, value, attn_mask))
        with _kernels_of_host(query):
            if _chosen(enable_gqa, query, key, value, attn_mask, dropout_p, is_causal) != _FLASH:
                with torch.autocast("cuda", enabled=False), places.made_at(places.of(query)):
                    return call(query, key, value, attn_mask)
        found: torch.Tensor = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu(
            query, key, value, dropout_p, is_causal, attn_mask=fused.added(attn_mask, query), scale=scale
        )[0]
        return found

    return scaled_dot_product_attention


def _takes_both(query: Any) -> bool:
    """Reports whether CUDA has kernels allowed that take a mask and are causal; the host's refuse that, as its math."""
    allowed = torch.backends.cuda
    return places.is_plain_on_device(query) and (allowed.mem_efficient_sdp_enabled() or allowed.cudnn_sdp_enabled())


def _causal(mask: Any, query: Any, key: Any) -> torch.Tensor:
    """Returns a mask by which each query sees no later key than its own, and what it saw of the others."""
    seen = torch.ones(query.shape[-2], key.shape[-2], dtype=torch.bool, device=query.device).tril_()
    made: torch.Tensor = mask & seen if mask.dtype is torch.bool else mask.masked_fill(~seen, float("-inf"))
    return made


def _kernels_of_host(query: Any) -> AbstractContextManager[None]:
    """Allows all the host has where a program allows fused kernels of CUDA alone: the host's one does less."""
    allowed = torch.backends.cuda
    kernels = allowed.flash_sdp_enabled, allowed.mem_efficient_sdp_enabled, allowed.cudnn_sdp_enabled
    if allowed.math_sdp_enabled() or places.of(query) is None or not any(enabled() for enabled in kernels):
        return nullcontext()
    return sdpa_kernel([SDPBackend.FLASH_ATTENTION, SDPBackend.MATH])


def _flexible(original: Callable[..., Any]) -> Callable[..., Any]:
    def flex_attention_hop(query: Any, key: Any, value: Any, *others: Any) -> Any:
        """Acts as PyTorch's; what has gradients is done by the operations that define it, which have their own."""
        differs = torch.is_grad_enabled() and any(t.requires_grad for t in (query, key, value))
        if not differs or places.of(query) is None:
            return original(query, key, value, *others)
        from torch._dynamo._trace_wrapped_higher_order_op import TransformGetItemToIndex  # which takes seconds

        with TransformGetItemToIndex():
            return math_attention(query, key, value, *others)

    return flex_attention_hop


def _chosen(grouped: bool, *args: Any) -> int:
    """Returns the way in which the CPU does it with tensors such as these, where several heads may share keys."""
    switches = torch.is_grad_enabled(), torch._C._get_flash_sdp_enabled(), torch._C._get_math_sdp_enabled()
    key = tuple([(a.shape, a.stride(), a.dtype, a.requires_grad) if isinstance(a, torch.Tensor) else a for a in args])
    found = _choices.get((key, switches, grouped))
    if found is None:
        alike = [_alike(a) if isinstance(a, torch.Tensor) else a for a in args]
        found = _choices[key, switches, grouped] = torch._fused_sdp_choice(*alike, enable_gqa=grouped)
    return found


def _alike(tensor: torch.Tensor) -> torch.Tensor:
    made = torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype, device=HOST)
    return made.requires_grad_(tensor.requires_grad)
