"""What programs that reduce gradients in buckets take from torch._utils: many tensors as one, and back."""

from __future__ import annotations

from collections.abc import Sequence

from torchemu.frontends.numpy._tensor import Tensor
from torchemu.frontends.numpy._tensor.joining import cat


def _flatten_dense_tensors(tensors: Sequence[Tensor]) -> Tensor:
    """The elements of tensors of one dtype, one tensor after another; of a single tensor, a view where that can be."""
    if len(tensors) == 1:
        return tensors[0].contiguous().view(-1)
    return cat([t.contiguous().view(-1) for t in tensors])


def _unflatten_dense_tensors(flat: Tensor, tensors: Sequence[Tensor]) -> tuple[Tensor, ...]:
    """Views of a tensor of one dimension, with the shapes of these tensors, one after another."""
    parts, at = [], 0
    for t in tensors:
        parts.append(flat.narrow(0, at, t.numel()).view(t.shape))
        at += t.numel()
    return tuple(parts)
