"""Arguments of tasks: tensors by address, scalars of 64 bits, and tags that say what a task does to a tensor."""

from __future__ import annotations

import ctypes
import enum
import math
import operator
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

_WORD = (1 << 64) - 1
_MOST_DIMENSIONS = 5


class DataType(enum.IntEnum):
    """The type of elements."""

    FLOAT32 = 0
    FLOAT16 = 1
    INT32 = 2
    INT16 = 3
    INT8 = 4
    UINT8 = 5
    BFLOAT16 = 6
    INT64 = 7
    UINT64 = 8
    UINT16 = 9
    UINT32 = 10


def get_element_size(dtype: DataType) -> int:
    """Bytes an element."""
    return 1 if dtype.name.endswith("INT8") else int(dtype.name[-2:]) // 8


class ArgDirection(enum.IntEnum):
    """The direction of a kernel's argument, in its signature."""

    SCALAR = 0
    IN = 1
    OUT = 2
    INOUT = 3


class TensorArgType(enum.IntEnum):
    """The access of a task to a tensor, from which the order of tasks follows."""

    INPUT = 0
    OUTPUT = 1
    INOUT = 2
    OUTPUT_EXISTING = 3
    NO_DEP = 4

    @property
    def follows(self) -> bool:
        """Reports whether the task comes after the one that made the tensor."""
        return self in (TensorArgType.INPUT, TensorArgType.INOUT)

    @property
    def makes(self) -> bool:
        """Reports whether the task makes the tensor, for those that follow."""
        return self in (TensorArgType.OUTPUT, TensorArgType.OUTPUT_EXISTING, TensorArgType.INOUT)


@dataclass(frozen=True)
class ContinuousTensor:
    """Elements one after another from an address on. Made with :meth:`make`.

    Attributes:
        data: the address of the first: the host's, or with child_memory that of a chip's memory.
        shapes: the size of each dimension; at most five.
        dtype: of the elements.
        child_memory: whether the tensor is in a chip's memory: a window, or what malloc gave.
    """

    data: int
    shapes: tuple[int, ...]
    dtype: DataType
    child_memory: bool

    @classmethod
    def make(cls, data: int, shapes: Sequence[int], dtype: DataType, child_memory: bool = False) -> ContinuousTensor:
        """A tensor at an address.

        Raises:
            ValueError: a size is negative, or there are more than five.
        """
        sizes = tuple(operator.index(size) for size in shapes)
        if len(sizes) > _MOST_DIMENSIONS or any(size < 0 for size in sizes):
            raise ValueError(f"shapes {sizes}: there can be up to {_MOST_DIMENSIONS} sizes, from 0 on")
        return cls(operator.index(data) & _WORD, sizes, DataType(dtype), bool(child_memory))

    @property
    def ndims(self) -> int:
        """The number of dimensions."""
        return len(self.shapes)

    def numel(self) -> int:
        """The number of elements."""
        return math.prod(self.shapes)

    def nbytes(self) -> int:
        """The number of bytes."""
        return self.numel() * get_element_size(self.dtype)


Tensor = ContinuousTensor
"""Its name in later versions."""


class TaskArgs:
    """The arguments of one task: first tensors, then scalars."""

    def __init__(self) -> None:
        self._tensors: list[tuple[ContinuousTensor, TensorArgType]] = []
        self._scalars: list[int] = []

    def add_tensor(self, t: ContinuousTensor, tag: TensorArgType = TensorArgType.INPUT) -> None:
        """Adds a tensor, and what the task does to it.

        Raises:
            TypeError: t is no ContinuousTensor; make_tensor_arg makes one of a torch.Tensor.
            RuntimeError: there are scalars already.
        """
        if not isinstance(t, ContinuousTensor):
            raise TypeError(
                f"add_tensor wants a ContinuousTensor, not {type(t).__name__}: of a torch.Tensor, "
                "simpler_setup.torch_interop.make_tensor_arg makes one"
            )
        if self._scalars:
            raise RuntimeError("add_tensor after add_scalar: all tensors of a TaskArgs come before its scalars")
        self._tensors.append((t, TensorArgType(tag)))

    def add_scalar(self, value: Any) -> None:
        """Adds a scalar; see scalar_to_uint64."""
        self._scalars.append(scalar_to_uint64(value))

    def tensor_count(self) -> int:
        """The number of tensors."""
        return len(self._tensors)

    def scalar_count(self) -> int:
        """The number of scalars."""
        return len(self._scalars)

    def __len__(self) -> int:
        return len(self._tensors) + len(self._scalars)

    def tensor(self, i: int) -> ContinuousTensor:
        """The i-th tensor."""
        return self._tensors[i][0]

    def tag(self, i: int) -> TensorArgType:
        """Returns what the task does to the i-th tensor."""
        return self._tensors[i][1]

    def scalar(self, i: int) -> int:
        """The i-th scalar."""
        return self._scalars[i]

    def copied(self) -> TaskArgs:
        """The arguments as they are now: what a task has been submitted with does not change."""
        copy = TaskArgs()
        copy._tensors, copy._scalars = list(self._tensors), list(self._scalars)
        return copy


def scalar_to_uint64(value: Any) -> int:
    """The 64 bits that a kernel gets for a scalar: an integer's, two's complement; a float's as float32; those of a
    ctypes scalar."""
    if isinstance(value, ctypes.c_double):
        return int(struct.unpack("<Q", struct.pack("<d", value.value))[0])
    if isinstance(value, ctypes._SimpleCData):
        value = value.value
    if isinstance(value, float):
        return int(struct.unpack("<I", struct.pack("<f", value))[0])
    return int(value) & _WORD


class CallConfig:
    """Settings of the hardware's runtime for tasks: any attributes. A simulated chip needs none of them."""

    def __init__(self) -> None:
        self.block_dim = 24
        self.aicpu_thread_num = 3
