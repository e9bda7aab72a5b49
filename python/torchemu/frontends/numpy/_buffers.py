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
from torchemu.frontends.numpy._streams import Stream
from torchemu.frontends.numpy._tensor.core import Tensor
from torchemu.frontends.numpy._tensor.creation import empty, zeros
from torchemu.frontends.numpy._tensor.elementwise import isnan
from torchemu.frontends.numpy._tensor.from_data import tensor
from torchemu.frontends.numpy._tensor.storage import Storage
from torchemu.runtime import buffer


class Tensors(buffer.TensorClass):
    """Tensor, whose objects are buffers themselves."""

    kind = Tensor

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
        """Returns a tensor, on the default device, of memory that the core's tensor owns."""
        storage = Storage(world, None, math.prod(shape) * kind.itemsize)
        storage._handles = {kind: core}
        t = object.__new__(Tensor)
        t.dtype, t.device, t._storage = kind, _settings.resolved(None), storage
        t._shape, t._core = tuple(shape), core
        return t

    def array(self, tensor: Any) -> np.ndarray:
        """Returns the elements, as numpy() does."""
        found: np.ndarray = tensor.numpy()
        return found

    def has_nan(self, tensor: Any) -> bool:
        """Returns whether there is a NaN, which an operation of the tensor's device finds."""
        return bool(isnan(tensor).any())

    @contextlib.contextmanager
    def new_stream(self) -> Iterator[int]:
        """Makes a new stream the current one for the duration of a with block, and gives its handle."""
        with Stream() as stream:
            yield stream._handle.number


def _where(on_host: bool) -> Any:
    return CPU if on_host else runtime.current().own_device


TENSORS = Tensors()

buffer.register(TENSORS)
