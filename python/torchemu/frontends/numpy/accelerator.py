"""torch.accelerator: the simulated devices under the names that do not depend on their kind. See torchemu.ahbm."""

from __future__ import annotations

from types import TracebackType

from torchemu import runtime
from torchemu.frontends.numpy import _device, _settings
from torchemu.frontends.numpy._streams import current_stream, set_stream, synchronize
from torchemu.frontends.numpy.ahbm import current_device, device_count, is_available, set_device

__all__ = [
    "current_accelerator",
    "current_device_index",
    "current_stream",
    "device_count",
    "device_index",
    "is_available",
    "set_device_index",
    "set_stream",
    "synchronize",
]

current_device_index = current_device_idx = current_device
set_device_index = set_device_idx = set_device


def current_accelerator(check_available: bool = False) -> _device.device:
    """The kind of the simulated devices, as the rank's program calls them, without a number."""
    return _device.device(_settings.current().accelerator)


class device_index:  # noqa: N801 (PyTorch's name)
    """A context manager that makes a device the current one; None leaves the one that is."""

    def __init__(self, device: int | None, /) -> None:
        self.idx = device

    def __enter__(self) -> None:
        self._before = runtime.current().device
        if self.idx is not None:
            set_device(self.idx)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        set_device(self._before)
