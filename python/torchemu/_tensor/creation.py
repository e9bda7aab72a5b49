"""Making tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from torchemu import _runtime, dtypes
from torchemu._binding import go
from torchemu._placement import WHOLE, DPPolicy
from torchemu._shape import dims, row_major
from torchemu._tensor.core import Tensor, allocated, operand


def zeros(
    *size: int | Sequence[int],
    dtype: str | dtypes.dtype | None = None,
    device: int | str | None = None,
    dp: DPPolicy | None = None,
    name: str = "",
) -> Tensor:
    """A tensor of zeros on a device.

    Args:
        size: the shape, as zeros(2, 3) or zeros((2, 3)).
        dtype: a torch.dtype or a name ("f16", "float16", …); None is float32.
        device: a SIP's index, "ahbm" or "ahbm:3"; None is the current device.
        dp: how the tensor is sharded over the SIP's cubes and PEs; None puts all of it on one PE.
        name: a name for messages.

    Raises:
        ValueError: unknown dtype, negative dimension, no such device, or a policy that the topology cannot follow.
        TypeError: an argument of the wrong type.
        MemoryError: there is not that much memory.
    """
    context = _runtime.current()
    kind, shape, where = dtypes.parse(dtype), dims(size), _device(device, context)
    if dp is not None and not isinstance(dp, DPPolicy):
        raise TypeError(f"dp must be a DPPolicy, not {dp!r}")
    t = allocated(context.world, kind, shape, where, dp or WHOLE, name)
    if dp is not None:
        go.PlaceTensor(t._handle, dp.cube, dp.pe, dp.num_cubes or 0, dp.num_pes or 0)
    return t


def _device(device: int | str | None, context: _runtime.Context) -> int:
    from torchemu import ahbm

    if device is None:
        return context.device
    if isinstance(device, str):
        kind, _, index = device.partition(":")
        if kind != "ahbm" or (index and not index.isdecimal()):
            raise ValueError(
                f"unknown device {device!r}: devices are 'ahbm' and 'ahbm:0' to 'ahbm:{context.world.sips - 1}'"
            )
        device = int(index) if index else context.device
    if not isinstance(device, int):
        raise TypeError(f"device must be an integer or a string such as 'ahbm:0', not {device!r}")
    return ahbm.checked(device, context.world)


def full(size: Sequence[int], fill_value: Any, *, dtype: str | dtypes.dtype | None = None, **options: Any) -> Tensor:
    """A tensor of one value, of the value's own dtype unless another is given; the options are those of zeros."""
    value = tensor(fill_value, dtype=dtype)
    return zeros(size, dtype=value.dtype, **options).copy_(value)


def ones(*size: int | Sequence[int], **options: Any) -> Tensor:
    """A tensor of ones; the options are those of zeros."""
    return zeros(*size, **options).fill_(1)


def empty(*size: int | Sequence[int], **options: Any) -> Tensor:
    """A tensor whose contents mean nothing (here: zeros, so that runs repeat); the options are those of zeros."""
    return zeros(*size, **options)


def zeros_like(t: Tensor) -> Tensor:
    """Zeros of t's shape, dtype and device."""
    return zeros(t.shape, dtype=t.dtype, device=t.device)


def arange(*bounds: int, dtype: str | dtypes.dtype | None = "int64", **options: Any) -> Tensor:
    """The integers of range(*bounds)."""
    return tensor(list(range(*bounds)), dtype=dtype, **options)


def tensor(data: Any, dtype: str | dtypes.dtype | None = None, **options: Any) -> Tensor:
    """A tensor of the data (numbers, nested lists, an array); floats become float32 unless dtype says otherwise."""
    array = np.asarray(operand(data))
    if dtype is None and not isinstance(data, np.ndarray | np.generic | Tensor) and array.dtype == np.float64:
        dtype = "float32"
    kind = dtypes.of_numpy(array) if dtype is None else dtypes.parse(dtype)
    t = zeros(array.shape, dtype=kind, **options)
    with np.errstate(all="ignore"):  # what does not fit wraps or becomes infinite
        t._seen(writable=True)[...] = array
    return t


def restored(array: np.ndarray, device: int, dp: DPPolicy, name: str) -> Tensor:
    return tensor(array, device=device, dp=dp, name=name)


def from_numpy(array: np.ndarray) -> Tensor:
    """A tensor that shares the array's memory. A read-only array is copied, for a tensor can be written.

    An operation that is pending on the tensor is seen through it and its views; neither the array nor another tensor
    made from the array waits for it.

    Raises:
        TypeError: not an array, or of a dtype that torch has not.
        ValueError: a stride is negative or not a multiple of the element size, or the byte order is not this machine's.
    """
    if not isinstance(array, np.ndarray):
        raise TypeError(f"expected np.ndarray (got {type(array).__name__})")
    kind = dtypes.of_numpy(array)
    if not array.flags.writeable:
        array = array.copy()
    if any(s < 0 or s % kind.itemsize for s in array.strides):
        raise ValueError(
            "from_numpy needs strides that are multiples of the element size and not negative; copy() first"
        )
    return _wrapped(array, kind)


def _wrapped(array: np.ndarray, kind: dtypes.dtype) -> Tensor:
    context = _runtime.current()
    strides = tuple(s // kind.itemsize for s in array.strides)
    reach = 1 + sum((n - 1) * s for n, s in zip(array.shape, strides, strict=True)) if array.size else 0
    address = array.__array_interface__["data"][0]
    flat = go.WrapMemory(context.world.handle, kind.name, str(reach), address, reach * kind.itemsize)
    whole = Tensor(context.world, flat, kind, (reach,), device=context.device, external=array)
    return whole._view(array.shape, strides if array.size else row_major(array.shape), 0)
