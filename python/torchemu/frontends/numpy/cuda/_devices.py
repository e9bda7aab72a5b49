"""Properties of devices, and the current one."""

from __future__ import annotations

from types import TracebackType
from typing import Any

from torchemu.frontends.numpy import ahbm
from torchemu.runtime.device_properties import CAPABILITY, DeviceProperties, of_running_rank


class _DeviceProperties(DeviceProperties):
    """A device, under PyTorch's name of the class."""


def get_device_properties(device: Any = None) -> _DeviceProperties:
    """Returns what a device is; all of a topology are alike. Raises as set_device."""
    ahbm.index_of(device)
    return _DeviceProperties(**of_running_rank())


def get_device_name(device: Any = None) -> str:
    """A device's name."""
    return get_device_properties(device).name


def get_device_capability(device: Any = None) -> tuple[int, int]:
    """(9, 0): bfloat16 and eight-bit floats are there."""
    ahbm.index_of(device)
    return CAPABILITY


def get_arch_list() -> list[str]:
    """Empty: nothing is compiled for a kind of GPU."""
    return []


def is_bf16_supported(including_emulation: bool = True) -> bool:
    """True."""
    return True


def is_tf32_supported() -> bool:
    """False: products of float32 are not rounded."""
    return False


def can_device_access_peer(device: Any, peer_device: Any) -> bool:
    """Reports whether one device reaches another's memory: all do, but each its own."""
    return ahbm.index_of(device) != ahbm.index_of(peer_device)


def init() -> None:
    """Does nothing: devices are there."""


def is_initialized() -> bool:
    """True: devices are there."""
    return True


def ipc_collect() -> None:
    """Does nothing: ranks are in one process."""


def is_current_stream_capturing() -> bool:
    """False: there are no graphs."""
    return False


class device:  # noqa: N801 (PyTorch's name)
    """A context manager that makes a device the current one.

    Args:
        device: as set_device takes it; None, or a negative number, leaves the one that is.
    """

    def __init__(self, device: Any) -> None:
        absent = device is None or (isinstance(device, int) and device < 0)
        self.idx = -1 if absent else ahbm.index_of(device)
        self.prev_idx = -1

    def __enter__(self) -> None:
        self.prev_idx = ahbm.current_device()
        if self.idx >= 0:
            ahbm.set_device(self.idx)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        ahbm.set_device(self.prev_idx)


class device_of(device):  # noqa: N801
    """A context manager that makes the device of a tensor the current one; a tensor of the host leaves it."""

    def __init__(self, obj: Any) -> None:
        super().__init__(obj.get_device() if obj.is_cuda else -1)
