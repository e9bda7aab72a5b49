"""CUDA's Python interface."""

from torchemu.frontends.triton._placeholders import placeholders

__getattr__ = placeholders("cuda")
