"""Operations that sort, or that pick elements by their rank or by chance: what is counted of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torch import Tensor

from torchemu.frontends.torch.device import sorts
from torchemu.frontends.torch.device.ways import ALIKE, Counted, CounterOfSeveral, processors, staged


def _rows(tensor: Tensor, dim: int) -> sorts.Rows | None:
    """Returns the rows along a dimension; None of a tensor without elements."""
    dims, elements = tensor.dim(), tensor.numel()
    if not elements:
        return None
    length = tensor.shape[dim] if dims else 1
    return sorts.Rows(elements // length, length, tensor.itemsize, not dims or dim % dims == dims - 1)


def _sorted(args: Sequence[Any], kwargs: dict[str, Any], moved: int) -> Counted:
    rows = _rows(args[0], kwargs.get("dim", args[1] if len(args) > 1 else -1))
    return staged(moved, sorts.sorting(rows, processors())) if rows else (moved, 0, ALIKE)


def _largest(args: Sequence[Any], _: dict[str, Any], moved: int) -> Counted:
    rows = _rows(args[0], args[2] if len(args) > 2 else -1)
    if rows is None or not args[1]:
        return moved, 0, ALIKE
    is_sorted = args[4] if len(args) > 4 else True
    return staged(moved, sorts.picking(rows, args[1], is_sorted, processors()))


def _middle(args: Sequence[Any], _: dict[str, Any], moved: int) -> Counted:
    return _of_rank(args[0], args[1], moved)


def _kth(args: Sequence[Any], _: dict[str, Any], moved: int) -> Counted:
    return _of_rank(args[0], args[2] if len(args) > 2 else -1, moved)


def _of_rank(tensor: Tensor, dim: int, moved: int) -> Counted:
    rows = _rows(tensor, dim)
    return staged(moved, sorts.halving(rows, processors())) if rows else (moved, 0, ALIKE)


SEVERAL: dict[str, CounterOfSeveral] = {
    "sort": _sorted, "topk": _largest, "median": _middle, "nanmedian": _middle, "kthvalue": _kth,
}  # fmt: skip
"""Functions that count operations with several results, by their names, from arguments and the bytes that are moved."""


def median_of_all(args: Sequence[Any], out: Tensor, nbytes: int) -> Counted:
    """Counts the median of all elements, which are sorted for it."""
    elements = args[0].numel()
    took = sorts.by_digits(elements, args[0].itemsize) if elements else 0
    return staged(nbytes + out.nbytes, took)


def drawn(args: Sequence[Any], out: Tensor, nbytes: int) -> Counted:
    """Counts a draw by weights, which are those of each row."""
    rows = _rows(args[0], -1)
    if rows is None or not args[1]:
        return nbytes + out.nbytes, 0, ALIKE
    is_replaced = len(args) > 2 and args[2]
    return staged(nbytes + out.nbytes, sorts.drawing(rows, args[1], is_replaced, processors()))
