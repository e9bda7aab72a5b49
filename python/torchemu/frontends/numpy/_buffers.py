"""The NumPy front end's class of tensors, as what lies below the front ends knows it."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from torchemu import dtypes, runtime
from torchemu.bridge.handles import Handle
from torchemu.frontends.numpy import _settings
from torchemu.frontends.numpy._device import CPU
from torchemu.frontends.numpy._streams import pooled
from torchemu.frontends.numpy._tensor.core import Tensor, aliased_to
from torchemu.frontends.numpy._tensor.creation import empty, zeros
from torchemu.frontends.numpy._tensor.elementwise import isnan
from torchemu.frontends.numpy._tensor.from_data import tensor
from torchemu.frontends.numpy._tensor.storage import Storage
from torchemu.runtime import buffer


class Tensors(buffer.TensorClass):
    """Tensor, whose objects are buffers themselves."""

    kind = Tensor

    def whole(self, parts: Sequence[Any]) -> Tensor | None:
        """Returns the tensor of which tensors are the equal parts, one after another; None where there is none."""
        return _whole(parts)

    def default_dtype(self) -> dtypes.dtype:
        """Returns the rank's default dtype."""
        return _settings.current().dtype

    def empty(self, shape: Sequence[int], kind: dtypes.dtype, on_host: bool = False) -> Tensor:
        """Returns a tensor of undefined elements."""
        return empty(*shape, dtype=kind, device=_where(on_host))

    def zeros(self, shape: Sequence[int], kind: dtypes.dtype, on_host: bool = False) -> Tensor:
        """Returns a tensor of zeros, as torch.zeros makes it."""
        return zeros(*shape, dtype=kind, device=_where(on_host))

    def of_array(self, array: np.ndarray, on_host: bool = False) -> Tensor:
        """Returns a tensor of an array's elements, as torch.tensor makes it."""
        return tensor(array, device=_where(on_host))

    def of_core(self, world: runtime.World, core: Handle, kind: dtypes.dtype, shape: Sequence[int]) -> Tensor:
        """Returns a tensor, on this rank's device, of memory that the core's tensor owns."""
        storage = Storage(world, None, math.prod(shape) * kind.itemsize)
        storage._handles = {kind: core}
        return _of_storage(storage, kind, tuple(shape), core)

    def stand_beside(self, theirs: Tensor, own: Tensor) -> None:
        """Makes whoever uses another rank's memory wait for what is under way on the rank's own."""
        theirs._storage.stand_beside(own)

    def holding(self, address: int) -> Tensor | None:
        """Returns a tensor of the memory that a place is in."""
        found = runtime.current().world.exported.holding(address)
        return None if found is None else _of_storage(found[1], dtypes.uint8, (found[1].nbytes,), None)

    def array(self, tensor: Any) -> np.ndarray:
        """Returns the elements, as numpy() does."""
        found: np.ndarray = tensor.numpy()
        return found

    def has_nan(self, tensor: Any) -> bool:
        """Returns whether there is a NaN, which an operation of the tensor's device finds."""
        return bool(isnan(tensor).any())

    @contextlib.contextmanager
    def new_stream(self) -> Iterator[int]:
        """Makes a stream of the pool the current one for the duration of a with block, and gives its handle."""
        with pooled() as stream:
            yield stream._handle.number


def _of_storage(storage: Storage, kind: dtypes.dtype, shape: tuple[int, ...], core: Handle | None) -> Tensor:
    """A contiguous tensor of all of a storage's elements, on the rank's device."""
    t = object.__new__(Tensor)
    where = _settings.resolved(None)
    if where.is_host:
        where = _settings.resolved(_settings.current().accelerator)
    t.dtype, t.device, t._storage = kind, where, storage
    t._shape, t._core = shape, core
    return t


def _whole(parts: Sequence[Tensor]) -> Tensor | None:
    """Returns the tensor of which these are the equal parts, one after another; None where there is none."""
    if type(parts[0]) is not Tensor or not parts[0].is_contiguous():
        return None
    first, size = parts[0], parts[0].numel()
    storage, kind, shape, strides, at = first._storage, first.dtype, first._shape, first._strides, first._offset
    for t in parts:
        if (
            type(t) is not Tensor
            or t._storage is not storage
            or t._offset != at
            or not (t._shape is shape or t._shape == shape)
            or not (t._strides is strides or t._strides == strides)
            or t.dtype is not kind
        ):
            return None
        at += size
    if size == 0:
        return None
    numel = size * len(parts)
    if first._base is not None and _holds(first._base, first, numel):
        return first._base  # the core knows it already, if this is not the first time
    return aliased_to(storage, kind, first.device, (numel,), (1,), first._offset)


def _holds(base: Tensor, first: Tensor, numel: int) -> bool:
    """Returns whether a tensor is just so many elements from the first of another one on, which is a view of it."""
    same = base._offset == first._offset and base.dtype is first.dtype
    return same and base.numel() == numel and base.is_contiguous()


def _where(on_host: bool) -> Any:
    return CPU if on_host else runtime.current().own_device


TENSORS = Tensors()

buffer.register(TENSORS)
