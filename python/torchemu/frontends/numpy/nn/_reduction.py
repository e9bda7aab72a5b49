"""What the reductions of losses are called."""

from __future__ import annotations

import warnings
from typing import Any

from torchemu.frontends.numpy._tensor.core import Tensor


def legacy_get_string(size_average: Any, reduce: Any, emit_warning: bool = True) -> str:
    """The reduction that two older arguments mean."""
    averages, reduces = size_average is None or size_average, reduce is None or reduce
    reduction = "none" if not reduces else "mean" if averages else "sum"
    if emit_warning:
        warnings.warn(
            f"size_average and reduce args will be deprecated, please use reduction='{reduction}' instead.",
            stacklevel=3,
        )
    return reduction


def chosen(size_average: Any, reduce: Any, reduction: str) -> str:
    """The reduction that a call means.

    Raises:
        ValueError: there is none of that name.
    """
    if size_average is not None or reduce is not None:
        reduction = legacy_get_string(size_average, reduce)
    if reduction not in ("none", "mean", "sum"):
        raise ValueError(f"{reduction} is not a valid value for reduction")
    return reduction


def reduced(losses: Tensor, reduction: str) -> Tensor:
    """The losses, their mean, or their sum."""
    return {"none": lambda: losses, "mean": losses.mean, "sum": losses.sum}[reduction]()
