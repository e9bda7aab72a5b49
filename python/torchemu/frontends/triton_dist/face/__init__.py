"""Triton-distributed: kernels that reach other ranks' memory, and signal each other."""

from torchemu.frontends.triton._jit import jit
from torchemu.frontends.triton._placeholders import placeholders
from torchemu.frontends.triton_dist.face import language

__all__ = ["jit", "language"]

__getattr__ = placeholders("triton_dist")
