"""Kernels of fused attention and of its gradients, as the core has them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from torchemu.frontends.torch.device.ground import go
from torchemu.frontends.torch.device.kernel_costs import DTYPES, Kernels, listed

OF_HOST = "_scaled_dot_product_flash_attention_for_cpu"
"""PyTorch's operation for the host, which stands for two of CUDA's."""


def kernels(operation: str, name: str, args: Sequence[Any], kwargs: dict[str, Any]) -> Kernels:
    """Returns names of kernels, the bytes that they move, their operations, and their units; none where a call is no
    attention, or one of 16-bit floats with a mask, or the topology says nothing of it.

    Args:
        operation: of PyTorch.
        name: of CUDA's kernel.
    """
    if not operation.startswith(OF_HOST):
        return ()
    is_backward = operation != OF_HOST
    query, key, value = args[is_backward : 3 + is_backward]
    at = 7 if is_backward else 4
    dtype = DTYPES.get(query.dtype)
    is_masked = kwargs.get("attn_mask") is not None
    if dtype is None or (is_masked and dtype != "float32") or 0 in (*query.shape, *key.shape, *value.shape):
        return ()
    said = {
        "DType": dtype, "Heads": math.prod(query.shape[:-2]), "Rows": query.shape[-2], "Columns": key.shape[-2],
        "Depth": query.shape[-1], "ValueDepth": value.shape[-1], "Causal": len(args) > at and bool(args[at]),
        "Backward": is_backward,
    }  # fmt: skip
    return listed(go.AttentionCosts, name, said)
