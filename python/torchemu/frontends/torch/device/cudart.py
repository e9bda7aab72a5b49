"""torch.cuda.cudart: what programs ask of CUDA's runtime, where profilers need nothing."""

from __future__ import annotations

import enum
from typing import Any

import torch

from torchemu.frontends.torch.device import memory, places
from torchemu.frontends.torch.device.patches import Replacements


class _Error(enum.IntEnum):
    """The errors that there are: none."""

    success = 0


def _succeed(*_: Any) -> _Error:
    """Does nothing."""
    return _Error.success


class Runtime:
    """The functions of CUDA's runtime that programs call."""

    cudaError = _Error  # noqa: N815 (PyTorch's name)

    cudaProfilerStart = cudaProfilerStop = staticmethod(_succeed)  # noqa: N815

    @staticmethod
    def cudaHostRegister(address: int, size: int, flags: int) -> _Error:  # noqa: N802
        """Pins memory of the host."""
        places.register(int(address), int(size))
        return _Error.success

    @staticmethod
    def cudaHostUnregister(address: int) -> _Error:  # noqa: N802
        """Ends that memory is pinned."""
        places.unregister(int(address))
        return _Error.success

    @staticmethod
    def cudaGetErrorString(error: int) -> str:  # noqa: N802
        """Returns an error's text."""
        return "no error"

    @staticmethod
    def cudaMemGetInfo(device: Any = None) -> tuple[int, int]:  # noqa: N802
        """Returns the free and the whole memory of a device, in bytes."""
        return memory.info(device)


_RUNTIME = Runtime()


def _cudart() -> Runtime:
    return _RUNTIME


def put(replaced: Replacements) -> None:
    """Puts it in place."""
    replaced.put_all(torch.cuda, {"cudart": _cudart, "_cudart": _RUNTIME})
    replaced.put(torch.cuda.profiler, "cudart", _cudart)
