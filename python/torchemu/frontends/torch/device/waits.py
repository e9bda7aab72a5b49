"""Calls for which the host waits although it gets no element: it needs a size, copies something or looks for errors.

They are those that were seen to wait on an H200; tests/python/frontends/torch/record_waits.py.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from torchemu.frontends.torch.device import mixing, places

BY_LOOK = {
    "_linalg_check_errors", "_linalg_eigh", "_linalg_svd", "linalg_eig", "linalg_lstsq", "linalg_matrix_exp",
    "linalg_pinv", "_ctc_loss",
}  # fmt: skip
"""Operations at whose end the host looks at what they have found."""

_INDEXED = {"index", *mixing.WRITES_BY_INDEX}
"""Operations by indices."""


def _says_size(args: Sequence[Any], kwargs: dict[str, Any]) -> bool:
    """Reports whether a call says the size of its result."""
    return kwargs.get("output_size") is not None


def _is_prepared(args: Sequence[Any], kwargs: dict[str, Any]) -> bool:
    """Reports whether a call by indices needs to know for how many elements a condition holds, or has indices or values
    of the host's. One number where one condition holds is put without."""
    if places.of(args[0]) is None or args[1].__class__ not in (list, tuple):
        return False
    masks, (values, accumulate) = [*filter(is_mask, args[1])], (*args[2:4], None, False)[:2]
    if any(places.of(i) is None for i in args[1] if i is not None):
        return True
    if values is None or places.of(values) is not None:
        return bool(masks)
    return len(masks) != 1 or values.numel() != 1 or bool(accumulate)


def _finds_range(args: Sequence[Any], kwargs: dict[str, Any]) -> bool:
    """Reports whether a histogram is of all that there is, for which the least and the largest must be known."""
    return (*args[2:4], 0, 0)[:2] == (0, 0) and places.of(args[0]) is not None


OTHERWISE: dict[str, tuple[str, Callable[[Sequence[Any], dict[str, Any]], bool]]] = {
    "repeat_interleave": ("kernel", _says_size),
    "histc": ("read", _finds_range),
    **dict.fromkeys(_INDEXED, ("read", _is_prepared)),
}
"""By operations, of which kind some of their calls are, and which."""


def when(name: str) -> str:
    """Returns whether the host waits before the operation, "first", or after it, "last", where it does."""
    if name in _INDEXED:
        return "first"
    return "last" if name in BY_LOOK or name == "histc" else ""


def is_mask(index: Any) -> bool:
    """Reports whether an index says of each element whether it is meant."""
    return index is not None and index.dtype in (torch.bool, torch.uint8)


def for_copy(target: torch.Tensor, source: torch.Tensor, non_blocking: bool) -> bool:
    """Reports whether the host waits for a copy into a tensor: for one from or to the host's memory that a program
    says nothing of, and for one to memory that is not pinned."""
    ends = places.of(target), places.of(source)
    if (ends[0] is None) == (ends[1] is None):
        return False
    return not non_blocking or (ends[0] is None and not places.is_pinned(target))
