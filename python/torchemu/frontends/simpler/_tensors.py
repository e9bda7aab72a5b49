"""Tensors of torch as arguments of tasks."""

from __future__ import annotations

from torchemu.frontends.numpy import Tensor, dtype
from torchemu.frontends.simpler._arguments import ContinuousTensor, DataType


def torch_dtype_to_datatype(dt: dtype) -> DataType:
    """The DataType of a torch.dtype.

    Raises:
        KeyError: there is none.
    """
    return DataType[dt.name.upper()]


def make_tensor_arg(tensor: Tensor) -> ContinuousTensor:
    """The tensor by its address, which stays valid as long as the tensor is kept.

    Raises:
        ValueError: it is not contiguous, or of a dtype that has no DataType.
    """
    if tensor.dtype.name.upper() not in DataType.__members__:
        raise ValueError(f"make_tensor_arg: there is no DataType for {tensor.dtype}")
    if not tensor.is_contiguous():
        raise ValueError("make_tensor_arg wants a contiguous tensor: call contiguous() first, and keep the result")
    return ContinuousTensor.make(tensor.data_ptr(), tensor.shape, torch_dtype_to_datatype(tensor.dtype))
