"""Descriptors that a host makes, for kernels to load and store blocks by."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from torchemu.frontends.triton._memory import Descriptor


@dataclass
class TensorDescriptor:
    """A tensor with the shape of the blocks that kernels load and store.

    Attributes:
        base: the tensor.
        shape, strides: its.
        block_shape: of the blocks.
        padding: "zero" or "nan".
    """

    base: Any
    shape: Sequence[int]
    strides: Sequence[int]
    block_shape: Sequence[int]
    padding: str = "zero"

    @staticmethod
    def from_tensor(tensor: Any, block_shape: Sequence[int], padding: str = "zero") -> TensorDescriptor:
        """Makes that of a whole tensor."""
        return TensorDescriptor(tensor, list(tensor.shape), list(tensor.stride()), block_shape, padding)

    def as_descriptor(self, pointer_of: Callable[[Any], Any]) -> Descriptor:
        """Returns what a kernel gets."""
        return Descriptor(pointer_of(self.base), self.shape, self.strides, self.block_shape, self.padding)
