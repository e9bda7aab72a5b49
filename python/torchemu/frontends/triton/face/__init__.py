"""Triton: kernels as Python that runs, in simulated time, on a rank's device. Nothing is compiled."""

from torchemu.frontends.triton._arithmetic import cdiv
from torchemu.frontends.triton._jit import JITFunction, KernelInterface, constexpr_function, jit
from torchemu.frontends.triton._placeholders import placeholders
from torchemu.frontends.triton._tuning import Autotuner, Config, Heuristics, OutOfResources, autotune, heuristics
from torchemu.frontends.triton.face import language, runtime, testing

__version__ = "3.4.0"

__all__ = [
    "Autotuner",
    "Config",
    "Heuristics",
    "JITFunction",
    "KernelInterface",
    "OutOfResources",
    "autotune",
    "cdiv",
    "constexpr_function",
    "heuristics",
    "jit",
    "language",
    "next_power_of_2",
    "runtime",
    "set_allocator",
    "testing",
]


def next_power_of_2(n: int) -> int:
    """The smallest power of 2 that is not smaller."""
    return 1 << max(n - 1, 0).bit_length()


def set_allocator(allocator: object) -> None:
    """Does nothing: descriptors need no memory of their own."""


__getattr__ = placeholders("triton", is_package=True)
