"""Softmax, and losses of classes: what is counted of them."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any

from torch import Tensor

from torchemu.frontends.torch.device import softmaxes
from torchemu.frontends.torch.device.ways import (
    ALIKE,
    SERIAL,
    SERIAL_FAR,
    SHARED,
    SHORT,
    STEP,
    Counted,
    Counter,
    CounterOfSeveral,
    processors,
    staged,
)


def _softmax(name: str, at: int, again: int, args: Sequence[Any], out: Tensor, nbytes: int) -> Counted:
    """Counts a softmax or its gradient.

    Args:
        name: of the operation.
        at: where its dimension is among its arguments.
        again: how often what it moves is moved along the last dimension.
    """
    dims, elements, moved = out.dim(), out.numel(), nbytes + out.nbytes
    if not elements or not dims:
        return moved, elements, SHORT
    if args[at] % dims != dims - 1:
        columns = softmaxes.columns_of(out.shape, args[at], out.itemsize)
        if columns.inner > 1:
            return _by_columns(columns, out.nbytes, moved, name.endswith("_data"))
    length, moved = out.shape[args[at]], moved * again
    rows = elements // length
    if rows <= softmaxes.few(processors()):
        return staged(moved, softmaxes.alone(name, length))
    if length <= softmaxes.HELD:
        return moved, rows * softmaxes.padded(length), SHORT
    is_backward = name.endswith("_data")
    return moved, elements if is_backward else math.ceil(elements * softmaxes.read(length, out.itemsize)), ALIKE


def _by_columns(columns: softmaxes.Columns, held: int, moved: int, is_backward: bool) -> Counted:
    """Counts one along a dimension after which there are elements."""
    steps = columns.steps(processors(), is_backward)
    alone = SERIAL_FAR if softmaxes.is_far(held) else SERIAL
    return moved, steps * STEP, SHARED if columns.threads[0] > 1 else alone


ONE: dict[str, Counter] = {
    name: functools.partial(_softmax, name, at, again)
    for name, at, again in (
        ("_softmax", 1, 1), ("_log_softmax", 1, 1), ("_softmax_backward_data", 2, 2),
        ("_log_softmax_backward_data", 2, 1),
    )
}  # fmt: skip
"""Functions that count operations with one result, by their names."""


def _loss(args: Sequence[Any], _: dict[str, Any], moved: int) -> Counted:
    """Counts a loss that looks at one class of each row, and what is added up of it."""
    chosen = args[1]
    moved = 2 * chosen.nbytes + moved - args[0].nbytes - chosen.nbytes
    if args[3] == _NONE or not chosen.numel():
        return staged(moved, 1000 + 0.004 * chosen.numel())
    return staged(moved, softmaxes.adding_up(chosen.numel(), args[0].nbytes // chosen.numel()))


_NONE = 0  # reductions of losses, as PyTorch numbers them


SEVERAL: dict[str, CounterOfSeveral] = {"nll_loss_forward": _loss}
"""Functions that count operations with several results, by their names, from arguments and the bytes that are moved."""
