"""Names of Triton's runtime that programs import."""

from typing import Any

from torchemu.frontends.triton._jit import JITFunction
from torchemu.frontends.triton._placeholders import placeholders
from torchemu.frontends.triton._tuning import Autotuner, Config, Heuristics, OutOfResources, autotune, heuristics

__all__ = ["Autotuner", "Config", "Heuristics", "JITFunction", "OutOfResources", "autotune", "driver", "heuristics"]


_SHARED, _REGISTERS, _THREADS = 232_448, 65_536, 2048
"""Bytes of shared memory, registers and threads of a multiprocessor, of the kind whose target is named below."""


class _Utils:
    """The driver's questions about devices."""

    def get_device_properties(self, device: Any = None) -> dict[str, int]:
        """The sizes of a device: of its multiprocessors, and how many they are."""
        import torch

        return {
            "max_shared_mem": _SHARED,
            "max_num_regs": _REGISTERS,
            "max_threads_per_sm": _THREADS,
            "multiprocessor_count": torch.cuda.get_device_properties(device).multi_processor_count,
            "warpSize": _Target.warp_size,
        }


class _Active:
    """The driver in use.

    Attributes:
        utils: what it knows of devices.
    """

    utils = _Utils()

    def get_active_torch_device(self) -> Any:
        """The rank's device, as PyTorch names it."""
        import torch

        return torch.device("cuda", torch.cuda.current_device())

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
