"""Tensors of memory that a program describes by numbers: ``__cuda_array_interface__``, version 3."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch.utils._python_dispatch import _disable_current_modes

from torchemu.runtime.buffer import chosen


def described(given: Any) -> Mapping[str, Any] | None:
    """Returns what an object that is no tensor says of memory on a device; None if it says nothing."""
    if isinstance(given, torch.Tensor):
        return None
    found: Mapping[str, Any] | None = getattr(given, "__cuda_array_interface__", None)
    return found


def tensor_of(interface: Mapping[str, Any]) -> torch.Tensor:
    """Returns a tensor of the described elements, in place, on the device that has them.

    Raises:
        RuntimeError: there is no memory of a device, or it ends before the last element.
        ValueError: strides are no whole elements; elements are masked.
    """
    if interface.get("mask") is not None:
        raise ValueError("__cuda_array_interface__ with a mask: tensors have no masked elements")
    shape, kind = tuple(interface["shape"]), _dtype_of(interface["typestr"])
    address, strides = interface["data"][0], _strides_of(interface, kind)
    if not math.prod(shape):
        return torch.empty(shape, dtype=kind, device="cuda")
    with _disable_current_modes():
        held = chosen().holding(address)
        if held is None:
            raise RuntimeError(
                f"The specified pointer {address:#x} resides on host memory and is not registered with any CUDA "
                "device: memory of a tensor's data_ptr() and of mori.shmem.shmem_malloc is."
            )
        start = address - held.untyped_storage().data_ptr()
        last = start + sum((n - 1) * step for n, step in zip(shape, strides, strict=True)) * kind.itemsize
        if last + kind.itemsize > held.untyped_storage().nbytes():
            raise RuntimeError(f"{shape} elements of {kind} at {address:#x} end behind the memory that begins there")
        return _view(held, kind, start, shape, strides)


def _view(held: torch.Tensor, kind: torch.dtype, start: int, shape: tuple[int, ...], strides: Any) -> torch.Tensor:
    offset, rest = divmod(start, kind.itemsize)
    if rest:
        raise ValueError(f"elements of {kind} cannot begin at byte {start} of a storage")
    made = torch.empty(0, dtype=kind)
    return made.set_(held.untyped_storage(), offset, shape, strides)


def _dtype_of(typestr: str) -> torch.dtype:
    return torch.from_numpy(np.empty(0, np.dtype(typestr))).dtype


def _strides_of(interface: Mapping[str, Any], kind: torch.dtype) -> tuple[int, ...]:
    """Returns the elements from one index to the next, for each dimension."""
    shape, strides = tuple(interface["shape"]), interface.get("strides")
    if strides is None:
        return tuple(math.prod(shape[axis + 1 :]) for axis in range(len(shape)))
    if any(n < 0 or n % kind.itemsize for n in strides):
        raise ValueError(f"strides of {tuple(strides)} bytes are to be whole elements of {kind}, and not negative")
    return tuple(n // kind.itemsize for n in strides)
