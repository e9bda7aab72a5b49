"""Storages that operations between ranks are yet to read or write: their memory stays where it is until then.

The core has the addresses of elements, and moves data when all ranks have joined. A tensor may have another storage by
then, which costs nothing: works keep the storages that they were issued with. A storage that gets another size has
other memory: before that, the host waits for the data of what uses it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from torchemu.frontends.torch.device.ground import context, go

_MANY = 64
"""Places for handles, from which on those that have ended are taken out."""


def note(tensors: Sequence[torch.Tensor], handle: int, lane: object) -> list[Any]:
    """Notes that a work uses tensors. Returns their storages, which whoever has the work is to keep.

    Args:
        tensors: they.
        handle: the work's.
        lane: equal for works of which the later ones have their data in place no sooner than the others: the last one
            stands for them.
    """
    storages: list[Any] = [tensor.untyped_storage() for tensor in tensors]
    for storage in storages:
        flights: dict[object, int] | None = getattr(storage, "_flights", None)
        if flights is None:
            storage._flights = {lane: handle}
        else:
            flights[lane] = handle
            if len(flights) > _MANY:
                _land(flights)
    return storages


def before_move(storage: Any) -> None:
    """Makes the host wait until no operation between ranks is yet to use a storage's memory."""
    flights: dict[object, int] | None = getattr(storage, "_flights", None)
    if flights is not None:
        for handle in list(flights.values()):
            _settle(handle)
        _land(flights)


def _land(flights: dict[object, int]) -> None:
    """Takes those out that have ended."""
    for lane in [lane for lane, handle in flights.items() if _has_ended(handle)]:
        del flights[lane]


def _settle(handle: int) -> None:
    try:
        event = go.WorkSettled(handle)
    except RuntimeError:  # it has failed, or nobody has it any more
        return
    if event:
        try:
            context().wait(event)
        finally:
            go.Release(event)


def _has_ended(handle: int) -> bool:
    try:
        return bool(go.IsDone(handle))
    except RuntimeError:  # nobody has it any more
        return True
