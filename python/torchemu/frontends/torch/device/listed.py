"""Operations on lists of tensors: the bytes and nanoseconds of the launches that go through them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torch import Tensor

from torchemu.frontends.torch.device import updates
from torchemu.frontends.torch.device.ways import Counted, staged

_NAMES = ("_foreach_", "_fused_adam", "_fused_sgd_", "_fused_adagrad_")

_STATES = 5
"""Arguments of a fused optimizer that are lists of as many elements; after them come the numbers of steps."""

_TAKES = {
    "_fused_adam": (0.56, 0.54), "_fused_adamw": (0.56, 0.54), "_fused_sgd": (0.37, 0.34), "_foreach_div": (0.58, 0.2),
    "_foreach_sqrt": (0.47, 0.16), "_foreach_reciprocal": (0.47, 0.16), "_foreach_pow": (0.47, 0.16),
    "_foreach_exp": (0.47, 0.16), "_foreach_addcdiv": (0.32, 0.2), "_foreach_zero": (0.05, 0.055),
}  # fmt: skip
"""Nanoseconds that an element takes a block at least, and a processor; few are bound by that."""

_LEAST = (0.1, 0.1)

_ADDED_UP = 2600
"""Nanoseconds of the kernel that adds up what blocks have found."""


def is_of_lists(name: str) -> bool:
    """Reports whether an operation goes through lists of tensors."""
    return name.startswith(_NAMES)


def counted(name: str, args: Sequence[Any], moved: int) -> Counted:
    """Counts an operation on lists.

    Args:
        moved: bytes of operands and results.
    """
    lists = [a for a in args[:_STATES] if isinstance(a, (list, tuple)) and a and isinstance(a[0], Tensor)]
    sizes = tuple([t.numel() for t in lists[0]]) if lists else ()
    again = len(lists) - len({id(tensors[0]) for tensors in lists})  # lists that are given twice are read once
    moved -= again * sum(sizes) * lists[0][0].itemsize if again else 0
    writes_new = not name.endswith("_") and name != "_foreach_norm"
    waits, works = _TAKES.get(name.removesuffix("_"), _LEAST)
    took = updates.went_through(
        sizes, len(lists) + writes_new, moved, waits, works, bool(sizes) and lists[0][0].itemsize < 4
    )
    return staged(moved, took + _ADDED_UP * (name == "_foreach_norm"))
