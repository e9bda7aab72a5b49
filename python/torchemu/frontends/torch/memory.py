"""Tensors as the core sees them: regions of memory."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from torchemu.bridge.binding import go
from torchemu.bridge.ints import Ints

_CONTIGUOUS = -1  # in the place of the number of dimensions; see pybind/raw.go

_NAMES = (
    *("bool", "uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64"),
    *("float8_e4m3fn", "float8_e5m2", "float16", "bfloat16", "float32", "float64", "complex64", "complex128"),
)

_NUMBERS: dict[torch.dtype, int] = {getattr(torch, name): go.DTypeNumber(name) for name in _NAMES}

_AS_BYTES = go.DTypeNumber("uint8")


def regions(tensors: Sequence[torch.Tensor]) -> Ints:
    """Packs what the core is told of tensors. Their memory is to be kept until it needs it no more.

    Raises:
        RuntimeError: a tensor is not strided, or its elements have a type that nothing can be done with.
    """
    told: list[int] = []
    for tensor in tensors:
        number = _NUMBERS.get(tensor.dtype)
        if number is None:
            number = _moved(tensor)
        if tensor.layout is not torch.strided:
            raise RuntimeError(f"unsupported layout: {tensor.layout}")
        if tensor.is_contiguous():
            told.extend((_address(tensor), number, _CONTIGUOUS, tensor.numel()))
        else:
            told.extend((_address(tensor), number, tensor.dim(), *tensor.shape, *tensor.stride()))
    return Ints(told)


def _address(tensor: torch.Tensor) -> int:
    """Returns the address of the first element; 0 where tensors have no memory."""
    return 0 if tensor.is_meta or type(tensor).__name__ == "FakeTensor" else tensor.data_ptr()


def _moved(tensor: torch.Tensor) -> int:
    """The type that elements, which can be moved only, are moved as."""
    if tensor.element_size() != 1:
        raise RuntimeError(f"collectives of {tensor.dtype} are not supported")
    return _AS_BYTES
