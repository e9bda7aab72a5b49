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

_FEW = 16


class Flights(list[int]):
    """Handles of works that may use a storage."""

    most = _FEW
    """How many it has when those that have ended are taken out next."""

    def land(self) -> None:
        """Takes those out that have ended."""
        self[:] = [handle for handle in self if not _has_ended(handle)]
        self.most = max(_FEW, 2 * len(self))


def note(tensors: Sequence[torch.Tensor], handle: int) -> list[Any]:
    """Notes that a work uses tensors. Returns their storages, which whoever has the work is to keep."""
    storages: list[Any] = [tensor.untyped_storage() for tensor in tensors]
    for storage in storages:
        flights: Flights | None = getattr(storage, "_flights", None)
        if flights is None:
            flights = storage._flights = Flights()
        if not flights or flights[-1] != handle:
            flights.append(handle)
        if len(flights) > flights.most:
            flights.land()
    return storages


def before_move(storage: Any) -> None:
    """Makes the host wait until no operation between ranks is yet to use a storage's memory."""
    flights: Flights | None = getattr(storage, "_flights", None)
    if flights is None:
        return
    for handle in list(flights):
        _settle(handle)
    flights.land()


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
