"""Operations that reduce dimensions: what is counted of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from torchemu.frontends.torch.device import reductions
from torchemu.frontends.torch.device.reductions import HALVES, MOMENTS, PLACED, PLAIN, Kind, Reduced
from torchemu.frontends.torch.device.ways import ALIKE, STRIDED, Counted, Counter, CounterOfSeveral, meeting, processors

_STRIDED = torch.strided


def _reduced(x: Tensor, dims: Any) -> Reduced | None:
    """Returns what is reduced along dimensions: one, some, or all where none is given; None without elements."""
    elements = x.numel()
    if not elements or x.layout is not _STRIDED:
        return None
    count, given = x.dim(), [dims] if dims.__class__ is int else dims
    if not count or not isinstance(given, list | tuple) or not given:
        return Reduced(1, elements, x.itemsize, True)
    shape = x.shape
    if len(given) == 1 and x.is_contiguous():  # most calls
        dim = given[0] % count
        return Reduced(elements // shape[dim], shape[dim], x.itemsize, math.prod(shape[dim + 1 :]) == 1)
    gone = {dim % count for dim in given}
    values = math.prod(shape[dim] for dim in gone)
    sides = zip(x.stride(), shape, strict=True)
    fastest = min((step, dim) for dim, (step, n) in enumerate(sides) if n > 1 or dim in gone)
    return Reduced(elements // values, values, x.itemsize, fastest[1] in gone)


def _took(reduced: Reduced, kind: Kind) -> float:
    return reductions.taking(reduced, kind, processors())


def _by(kind: Kind, halves: Kind | None = None, at: int = 1) -> Counter:
    """Counts an operation with one result.

    Args:
        halves: of elements of 16 bits, where these take longer.
        at: where its dimensions are among its arguments.
    """

    def count(args: Sequence[Any], out: Tensor, nbytes: int) -> Counted:
        reduced, moved = _reduced(args[0], args[at] if len(args) > at else None), nbytes + out.nbytes
        if reduced is None:
            return moved, 0, ALIKE
        return meeting(moved, _took(reduced, halves if halves and reduced.itemsize == 2 else kind))

    return count


def _sum(args: Sequence[Any], out: Tensor, nbytes: int) -> Counted:
    """Counts a sum. Kernels that count bools read them one by one."""
    if args[0].dtype is torch.bool:
        return nbytes + out.nbytes, args[0].numel(), STRIDED
    return _ADDED(args, out, nbytes)


_ADDED = _by(PLAIN)


def _logarithm(args: Sequence[Any], out: Tensor, nbytes: int) -> Counted:
    """Counts the logarithm of a sum of exponentials: two reductions, and seven kernels beside them."""
    reduced, moved = _reduced(args[0], args[1]), nbytes + out.nbytes
    if reduced is None:
        return moved, 0, ALIKE
    largest = _took(reduced, HALVES if reduced.itemsize == 2 else PLAIN)
    beside = 9000 + (0.0025 + 0.0006 * reduced.itemsize) * reduced.elements
    return meeting(moved, largest + _took(reduced, PLAIN) + beside)


ONE: dict[str, Counter] = {
    **dict.fromkeys(("nansum", "mean", "prod", "any", "all"), _ADDED), "sum": _sum,
    **dict.fromkeys(("amax", "amin", "max", "min"), _by(PLAIN, HALVES)),
    **dict.fromkeys(("argmax", "argmin"), _by(PLACED)), **dict.fromkeys(("var", "std"), _by(MOMENTS)),
    "linalg_vector_norm": _by(PLAIN, at=2), "logsumexp": _logarithm,
}  # fmt: skip
"""Functions that count operations with one result, by their names."""


def _both(kind: Kind) -> CounterOfSeveral:
    """Counts an operation with two results."""

    def count(args: Sequence[Any], _: dict[str, Any], moved: int) -> Counted:
        reduced = _reduced(args[0], args[1] if len(args) > 1 else None)
        return meeting(moved, _took(reduced, kind)) if reduced else (moved, 0, ALIKE)

    return count


TWO: dict[str, CounterOfSeveral] = {
    **dict.fromkeys(("max", "min"), _both(PLACED)), **dict.fromkeys(("var_mean", "std_mean"), _both(MOMENTS)),
}  # fmt: skip
"""Functions that count operations with two results, by their names: from arguments and the bytes that are moved."""
