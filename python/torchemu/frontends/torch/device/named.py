"""The numbers by which a program names devices: without any, each rank is on cuda:0 on a cluster."""

from __future__ import annotations

from typing import Any

import torch

from torchemu.frontends.torch.device import places, visible
from torchemu.frontends.torch.device.ground import Context, RankLocal, context


class _Known:
    has_named = False


_known: RankLocal[_Known] = RankLocal(_Known)


def note(device: Any) -> None:
    """Notes what a program names a device by. A tensor's own word for its device is none of the program's."""
    if isinstance(device, int):
        is_said = not isinstance(device, bool)
    elif isinstance(device, str):
        is_said = ":" in device
    else:
        is_said = isinstance(device, torch.device) and device.index is not None and not places.is_own_word(device)
    if is_said:
        _known.get().has_named = True


def number_on_cluster(rank: Context, at: places.Place) -> int:
    """Returns the number that a device would have on a cluster, where the rank has got a tensor on it."""
    number = 0 if at.number == rank.first_device and not _known.get().has_named else at.number
    return visible.on_cluster(rank, number)


def note_current() -> None:
    """Notes that the program has chosen its current device."""
    if context().tasks is not None:
        _known.get().has_named = True
