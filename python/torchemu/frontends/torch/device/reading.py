"""Hosts that look at elements of their devices' tensors."""

from __future__ import annotations

import torch

from torchemu.frontends.torch.device import deferral, ordering
from torchemu.frontends.torch.device.ground import context, go


def wait_for(tensor: torch.Tensor, name: str) -> None:
    """Makes the host wait until all has ended that is on the rank's current stream, as a copy of the tensor to the host
    would, of which name is the call."""
    deferral.before_use([tensor])
    catch_up()
    ordering.was_read(context(), name, tensor)


def catch_up() -> None:
    """Makes the host wait until all has ended that is on the rank's current stream."""
    rank = context()
    event = go.StreamRecord(rank.stream)
    try:
        rank.wait(event)
    finally:
        go.Release(event)
