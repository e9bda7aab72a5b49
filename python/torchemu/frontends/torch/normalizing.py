"""Operations that SyncBatchNorm is made of. PyTorch has them for GPUs only; here are the same sums on the host's
memory."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

_libraries: list[Any] = []


def install() -> None:
    """Gives PyTorch the operations, once for the process."""
    if _libraries:
        return
    library = torch.library.Library("aten", "IMPL")
    _libraries.append(library)  # PyTorch takes back what a library did that is gone
    for function, name in _NAMES.items():
        for key in ("CPU", "Meta"):  # the latter in runs without data
            if not torch._C._dispatch_has_kernel_for_dispatch_key(f"aten::{name}", key):
                library.impl(name, function, key)


def _others(x: Tensor) -> list[int]:
    """The dimensions but that of the channels."""
    return [d for d in range(x.dim()) if d != 1]


def _along(values: Tensor, x: Tensor) -> Tensor:
    """Values of channels, in the shape of a factor of x."""
    return values.reshape([-1 if d == 1 else 1 for d in range(x.dim())])


def stats(x: Tensor, eps: float) -> tuple[Tensor, Tensor]:
    """Each channel's mean, and one over its standard deviation."""
    whole = x.float() if x.dtype in (torch.float16, torch.bfloat16) else x
    variance, mean = torch.var_mean(whole, _others(x), correction=0)
    return mean, (variance + eps).rsqrt()


def gathered_stats(
    x: Tensor,
    mean: Tensor,
    invstd: Tensor,
    running_mean: Any,
    running_var: Any,
    momentum: float,
    eps: float,
    counts: Any,
) -> tuple[Tensor, Tensor]:
    """The same over all ranks, from each rank's and how many elements that had; updates the running ones."""
    weights = counts.reshape(-1, 1).to(mean.dtype)
    total = weights.sum()
    together = (mean * weights).sum(0) / total
    spread = invstd.pow(-2) - eps + (mean - together).square()
    variance = (spread * weights).sum(0) / total
    if running_mean is not None:
        running_mean.mul_(1 - momentum).add_(together.to(running_mean.dtype), alpha=momentum)
    if running_var is not None:
        unbiased = variance * total / (total - 1)
        running_var.mul_(1 - momentum).add_(unbiased.to(running_var.dtype), alpha=momentum)
    return together, (variance + eps).rsqrt()


def normalized(x: Tensor, weight: Any, bias: Any, mean: Tensor, invstd: Tensor, eps: float) -> Tensor:
    """The result of the layer."""
    out = (x - _along(mean, x)) * _along(invstd, x)
    out = out if weight is None else out * _along(weight, x)
    out = out if bias is None else out + _along(bias, x)
    return out.to(x.dtype)


def reduced(
    grad: Tensor, x: Tensor, mean: Tensor, invstd: Tensor, weight: Any, input_g: bool, weight_g: bool, bias_g: bool
) -> tuple[Any, Any, Any, Any]:
    """The sums that the gradients are made of, and the gradients of weight and bias."""
    total = grad.sum(_others(x), dtype=mean.dtype)
    product = (grad * (x - _along(mean, x))).sum(_others(x), dtype=mean.dtype)
    kind = mean.dtype if weight is None else weight.dtype
    of_weight = (product * invstd).to(kind) if weight_g else None
    return total, product, of_weight, total.to(kind) if bias_g else None


def gradient(
    grad: Tensor, x: Tensor, mean: Tensor, invstd: Tensor, weight: Any, total: Tensor, product: Tensor, counts: Tensor
) -> Tensor:
    """The gradient of the layer's operand."""
    n = counts.sum().to(mean.dtype)
    centered = (x - _along(mean, x)) * _along(invstd.square() * product / n, x)
    factor = invstd if weight is None else invstd * weight
    return ((grad - _along(total / n, x) - centered) * _along(factor, x)).to(x.dtype)


_NAMES = {
    stats: "batch_norm_stats",
    gathered_stats: "batch_norm_gather_stats_with_counts",
    normalized: "batch_norm_elemt",
    reduced: "batch_norm_backward_reduce",
    gradient: "batch_norm_backward_elemt",
}
"""PyTorch's names of them."""
