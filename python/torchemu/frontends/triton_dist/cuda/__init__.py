"""CUDA's Python interface."""

from torchemu.frontends.triton._placeholders import placeholders
from torchemu.frontends.triton_dist.cuda import bindings
from torchemu.frontends.triton_dist.cuda.bindings import driver as cuda
from torchemu.frontends.triton_dist.cuda.bindings import runtime as cudart

__all__ = ["bindings", "cuda", "cudart"]

__getattr__ = placeholders("cuda", is_package=True)
