"""Matrix products with a dtype of their own for the result, or scales for each row: CUDA has kernels, the CPU none."""

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


def _scaled(
    a: Tensor,
    b: Tensor,
    scale_a: Tensor,
    scale_b: Tensor,
    bias: Tensor | None = None,
    scale_result: Tensor | None = None,
    out_dtype: torch.dtype | None = None,
    use_fast_accum: bool = False,
) -> Tensor:
    if not _is_by_row(a, b, scale_a, scale_b):
        return _scaled_product._op(a, b, scale_a, scale_b, bias, scale_result, out_dtype, use_fast_accum)
    product = torch.mm(a.float(), b.float()) * scale_a * scale_b
    return (product if bias is None else product + bias.float()).to(out_dtype or a.dtype)


def _is_by_row(a: Tensor, b: Tensor, scale_a: Tensor, scale_b: Tensor) -> bool:
    """Says whether each row of a, or each column of b, has a scale."""
    shapes = tuple(scale_a.shape), tuple(scale_b.shape)
    rows, columns = a.shape[0], b.shape[1]
    return shapes != ((1, 1), (1, 1)) and shapes[0] in ((rows, 1), (1, 1)) and shapes[1] in ((1, columns), (1, 1))


_scaled_product = aten._scaled_mm.default

KERNELS: dict[Any, Callable[..., Any]] = {
    getattr(packet, overload): _converting(getattr(torch, name))
    for name in ("mm", "bmm", "addmm", "baddbmm")
    for packet in (getattr(aten, name),)
    for overload in ("dtype", "dtype_out")
    if overload in packet.overloads()
} | {_scaled_product: _scaled}
"""Functions that compute them, by operation."""
