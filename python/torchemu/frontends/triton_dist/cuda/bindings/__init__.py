"""CUDA's C functions."""

from torchemu.frontends.triton._placeholders import placeholders

__getattr__ = placeholders("cuda.bindings")
