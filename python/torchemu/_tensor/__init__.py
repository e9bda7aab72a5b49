"""Tensors: what a rank's program calculates with. The Go core has their memory, NumPy does the arithmetic."""

from torchemu._shape import Size
from torchemu._tensor.core import HOST_READS, Tensor
from torchemu._tensor.creation import arange, empty, from_numpy, full, ones, tensor, zeros, zeros_like

__all__ = [
    "HOST_READS",
    "Size",
    "Tensor",
    "arange",
    "empty",
    "from_numpy",
    "full",
    "ones",
    "tensor",
    "zeros",
    "zeros_like",
]
