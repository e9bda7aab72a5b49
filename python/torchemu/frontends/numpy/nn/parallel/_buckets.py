"""Which gradients are reduced together, and the memory in which they are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torchemu.frontends.numpy._tensor.core import Tensor
from torchemu.frontends.numpy._tensor.creation import empty

MIB = 1 << 20
FIRST_LIMIT = MIB
"""Bytes of the bucket that is reduced first, unless the program says: it is small, so that it starts early."""


def assigned(params: Sequence[Tensor], order: Sequence[int], limits: Sequence[int]) -> list[list[int]]:
    """Numbers of parameters, in buckets of one dtype and device each.

    A bucket is full when it has as many bytes as its limit: the first of a kind has the first limit, the next ones
    the next, and the last limit is that of all others.

    Args:
        params: the parameters.
        order: the order in which they are put into buckets.
        limits: in bytes.

    Returns:
        The full buckets in the order in which they became so, and then the others.
    """
    full: list[list[int]] = []
    filling: dict[Any, list[int]] = {}
    nbytes: dict[Any, int] = {}
    used: dict[Any, int] = {}
    for number in order:
        kind = (params[number].dtype, params[number].device)
        filling.setdefault(kind, []).append(number)
        nbytes[kind] = nbytes.get(kind, 0) + params[number].nbytes
        if nbytes[kind] >= limits[min(used.get(kind, 0), len(limits) - 1)]:
            full.append(filling.pop(kind))
            nbytes[kind], used[kind] = 0, used.get(kind, 0) + 1
    return full + list(filling.values())


class Bucket:
    """Gradients that are reduced together.

    Attributes:
        numbers: of the parameters.
        flat: all gradients, one after the other.
        views: the gradient of each parameter in flat.
        missing: how many are not there yet in this backward pass.
        work: the reduction, once it has been issued.
    """

    def __init__(self, numbers: list[int], params: Sequence[Tensor]) -> None:
        self.numbers = numbers
        own = [params[i] for i in numbers]
        self.flat = empty(sum(p.numel() for p in own), dtype=own[0].dtype, device=own[0].device)
        parts = self.flat.split([p.numel() for p in own])
        self.views = [part.view(p.shape) for part, p in zip(parts, own, strict=True)]
        self.missing = len(numbers)
        self.work: Any = None

    def reset(self) -> None:
        """Nothing is there any more."""
        self.missing, self.work = len(self.numbers), None
