"""torch.ahbm: the simulated devices. Device i is SIP i."""

from __future__ import annotations

from torchemu import _runtime
from torchemu._streams import DeviceEvent as Event
from torchemu._streams import (
    Stream,
    StreamContext,
    current_stream,
    default_stream,
    set_stream,
    stream,
    synchronize,
)

__all__ = [
    "Event",
    "Stream",
    "StreamContext",
    "current_device",
    "current_stream",
    "default_stream",
    "device_count",
    "is_available",
    "set_device",
    "set_stream",
    "stream",
    "synchronize",
]


def device_count() -> int:
    """The number of SIPs of the topology."""
    return _runtime.current_world().sips


def is_available() -> bool:
    """Always true: a World has at least one SIP."""
    return True


def set_device(device: int) -> None:
    """Makes a SIP the current device of this rank: where its new tensors are.

    Raises:
        ValueError: the topology has no such SIP.
    """
    if not isinstance(device, int) or isinstance(device, bool):
        raise TypeError(f"device must be an integer, not {device!r}")
    context = _runtime.current()
    context.device = checked(device, context.world)


def current_device() -> int:
    """The current device of this rank; at first the SIP of the rank's own number."""
    return _runtime.current().device


def checked(device: int, world: _runtime.World) -> int:
    """The device, if the World has it."""
    if not 0 <= device < world.sips:
        raise ValueError(
            f"device {device} does not exist: topology {world.topology!r} has {world.sips} SIPs "
            f"(devices 0 to {world.sips - 1})"
        )
    return device
