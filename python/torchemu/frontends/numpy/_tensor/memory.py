"""Facts about a tensor's memory that programs ask for."""

from __future__ import annotations

from typing import Any

from torchemu import dtypes
from torchemu.frontends.numpy import _settings
from torchemu.frontends.numpy._tensor.copying import cast, moved
from torchemu.frontends.numpy._tensor.core import Tensor, method
from torchemu.frontends.numpy._tensor.storage import Storage


class UntypedStorage:
    """The bytes behind a tensor and its views."""

    def __init__(self, storage: Storage, where: Any) -> None:
        self._storage, self.device = storage, where

    def data_ptr(self) -> int:
        """The address of the first byte; from now on it stays there."""
        return self._storage.data_ptr()

    def nbytes(self) -> int:
        """The number of bytes."""
        return self._storage.nbytes

    size = __len__ = nbytes

    def element_size(self) -> int:
        """1."""
        return 1

    def __eq__(self, other: object) -> bool:
        return isinstance(other, UntypedStorage) and other._storage is self._storage

    def __hash__(self) -> int:
        return id(self._storage)


@method
def untyped_storage(self: Tensor) -> UntypedStorage:
    """The bytes behind the tensor and its views."""
    return UntypedStorage(self._storage, self.device)


def type_(self: Tensor, dtype: Any = None, non_blocking: bool = False) -> Any:
    """The name of the old class that the tensor would be of, as "torch.FloatTensor"; or the tensor as another dtype,
    which may be given by such a name too, and is then on the SIP where it says cuda.

    Raises:
        ValueError: there is no such class.
    """
    if dtype is None:
        place = "" if self.device.is_host else f"{self.device.type}."
        return f"torch.{place}{self.dtype.title}Tensor"
    if not isinstance(dtype, str) or not dtype.endswith("Tensor"):
        return cast(self, dtypes.parse(dtype))
    name = dtype.removeprefix("torch.").removesuffix("Tensor")
    place, _, title = name.rpartition(".")
    for kind in dtypes.ALL:
        if kind.title == title:
            return moved(cast(self, kind), _settings.resolved(place or "cpu"))
    raise ValueError(f"invalid type: {dtype!r}")
