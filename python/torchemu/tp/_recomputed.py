"""Calls that the backward pass repeats: what they were called with, and the gradients that the repetition finds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torchemu.frontends.numpy as torch


def leaves_of(inputs: Sequence[Any], needs: Sequence[bool]) -> tuple[Any, ...]:
    """Returns the same without their history; those tensors require a gradient of which that is said."""
    return tuple(
        t.detach().requires_grad_(need) if isinstance(t, torch.Tensor) else t
        for t, need in zip(inputs, needs, strict=True)
    )


def gradients(outputs: Any, grads: Sequence[torch.Tensor | None], leaves: Sequence[Any]) -> list[torch.Tensor | None]:
    """Returns those of the leaves, for those of the outputs. Gradients of other tensors are added to their grad.

    Raises:
        RuntimeError: no output requires a gradient.
    """
    several = (outputs,) if isinstance(outputs, torch.Tensor) else tuple(outputs)
    pairs = [(t, g) for t, g in zip(several, grads, strict=True) if isinstance(t, torch.Tensor) and t.requires_grad]
    if not pairs:
        raise RuntimeError("none of output has requires_grad=True, this checkpoint() is not necessary")
    torch.autograd.backward([t for t, _ in pairs], [g for _, g in pairs])
    return [t.grad if isinstance(t, torch.Tensor) else None for t in leaves]


class Arguments:
    """Keeps what a function was called with. Tensors are the autograd context's to keep."""

    def __init__(self, ctx: Any, args: Sequence[Any]) -> None:
        self._ctx = ctx
        self._others = [None if isinstance(t, torch.Tensor) else t for t in args]
        self._places = [i for i, t in enumerate(args) if isinstance(t, torch.Tensor)]
        ctx.save_for_backward(*[args[i] for i in self._places])

    def all(self) -> list[Any]:
        """Returns the arguments."""
        args = list(self._others)
        for place, t in zip(self._places, self._ctx.saved_tensors, strict=True):
            args[place] = t
        return args
