"""torch.ahbm: the simulated devices. Device i is SIP i."""

from __future__ import annotations

from typing import Any

from torchemu import runtime
from torchemu.errors import AcceleratorError
from torchemu.frontends.numpy import _device
from torchemu.frontends.numpy._streams import DeviceEvent as Event
from torchemu.frontends.numpy._streams import (
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
    """The number of SIPs that the rank's program sees: those of its node in a program that runs on several, otherwise
    all of the topology."""
    context = runtime.current()
    return context.world.sips if context.node is None else len(context.node)


def is_available() -> bool:
    """Always true: a World has at least one SIP."""
    return True


def set_device(device: Any) -> None:
    """Makes a SIP the current device of this rank: where its new tensors are.

    Args:
        device: its number, or a torch.device or its name; without a number nothing changes.

    Raises:
        AcceleratorError: there is no such SIP; a RuntimeError and a ValueError.
        RuntimeError: the name of no device, or the host.
        TypeError: what names no device.
    """
    runtime.current().device = index_of(device)


def current_device() -> int:
    """The current device of this rank; at first the SIP of the rank's own number."""
    return runtime.current().device


def own_device() -> int:
    """The number of the SIP that the rank is on, whichever is current."""
    return runtime.current().own_device


def index_of(device: Any = None) -> int:
    """The number of a device; None, or one without a number, is the current one. Raises as set_device."""
    if device is None:
        return current_device()
    if isinstance(device, int) and not isinstance(device, bool):
        return checked(device)
    meant = _device.device(device)
    if meant.is_host:
        raise RuntimeError(f"{meant} is the host, and not a simulated device")
    return current_device() if meant.index is None else checked(meant.index)


def checked(device: int) -> int:
    """The device, if the rank's program has it.

    Raises:
        AcceleratorError: it has not.
    """
    count = device_count()
    if not 0 <= device < count:
        fabric = f"topology {runtime.current_world().topology!r}"
        whose = fabric if runtime.current().node is None else f"each node of {fabric}"
        raise AcceleratorError(
            f"CUDA error: invalid device ordinal: device {device} does not exist: {whose} has {count} SIPs "
            f"(devices 0 to {count - 1})"
        )
    return device
