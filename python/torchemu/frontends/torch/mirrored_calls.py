"""Calls of ranks that stand for others, as they are compared; see runtime/classes.py."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from torchemu import runtime

_OWN = {"scatter": slice(0, 1), "gather": slice(-1, None), "reduce": slice(-1, None), "broadcast": slice(0, 1)}
"""By operations of a root, which of the tensors that a rank gives them all ranks have."""


def collective(context: runtime.Context, name: str, size: int, on_host: bool, used: Sequence[torch.Tensor]) -> None:
    """Notes a collective, where calls are compared.

    Args:
        context: the rank's that calls it.
        name: of the call.
        size: of the group.
        on_host: the tensors are the host's.
        used: what the rank receives, and then what it gives.
    """
    if context.world.calls is not None:
        alike = used[_OWN.get(name, slice(None))]
        context.world.calls.note(context, name, size, on_host, *((t.dtype, t.shape) for t in alike))


def message(context: runtime.Context, name: str, far: int, tag: int, on_host: bool, tensor: torch.Tensor) -> None:
    """Notes a send or a receive, where calls are compared.

    Args:
        context: the rank's that calls it.
        name: of the call.
        far: how far behind it in the group the other side is.
        tag: of the message.
        on_host: the tensor is the host's.
        tensor: what is sent or received.
    """
    if context.world.calls is not None:
        context.world.calls.note(context, name, far, tag, on_host, tensor.dtype, tensor.shape)
