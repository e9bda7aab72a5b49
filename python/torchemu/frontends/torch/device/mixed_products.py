"""Matrix products with a dtype of their own for the result, of which CUDA has kernels and the CPU none."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

aten = torch.ops.aten


def _converting(product: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """Makes a product convert its operands first: 16-bit floats multiplied as float32 are exact."""

    def call(*args: Any, **kwargs: Any) -> Tensor:
        *operands, dtype = args
        return product(*(operand.to(dtype) for operand in operands), **kwargs)

    return call


KERNELS: dict[Any, Callable[..., Any]] = {
    getattr(packet, overload): _converting(getattr(torch, name))
    for name in ("mm", "bmm", "addmm", "baddbmm")
    for packet in (getattr(aten, name),)
    for overload in ("dtype", "dtype_out")
    if overload in packet.overloads()
}
"""What computes them, by the operations."""
