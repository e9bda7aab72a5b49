"""Names of Triton's runtime that programs import."""

from typing import Any

from torchemu.frontends.triton._jit import JITFunction
from torchemu.frontends.triton._placeholders import placeholders
from torchemu.frontends.triton._tuning import Autotuner, Config, Heuristics, OutOfResources, autotune, heuristics

__all__ = ["Autotuner", "Config", "Heuristics", "JITFunction", "OutOfResources", "autotune", "driver", "heuristics"]


class _Active:
    """The driver in use."""

    def get_current_device(self) -> int:
        """The number of the rank's device."""
        import torch

        return torch.cuda.current_device()

    def get_current_stream(self, device: Any = None) -> int:
        """The handle of the current stream."""
        import torch

        return torch.cuda.current_stream().cuda_stream

    def get_current_target(self) -> Any:
        """The target that kernels are compiled for."""
        return _Target()

    def get_device_interface(self) -> Any:
        """torch.cuda."""
        import torch

        return torch.cuda


class _Target:
    """The target that kernels are compiled for."""

    backend, arch, warp_size = "cuda", 90, 32


class _Driver:
    """The drivers.

    Attributes:
        active: the one in use.
    """

    active = _Active()


driver = _Driver()

__getattr__ = placeholders("triton.runtime", is_package=True)
