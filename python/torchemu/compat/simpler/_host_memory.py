"""The host's memory as programs name it: by address."""

from __future__ import annotations

import numpy as np

from torchemu import _runtime, dtypes
from torchemu._tensor.storage import Storage


def storage_at(address: int, nbytes: int, what: str) -> Storage:
    """The memory of tensors that so many bytes from an address on are in. What is to be there is.

    Raises:
        ValueError: they are not in the memory of one tensor whose address the program has asked for.
    """
    world = _runtime.current().world
    for start, storage in world.exported.items():
        if start <= address and address + nbytes <= start + storage.nbytes:
            storage.wait()
            storage.settle()
            return storage
    raise ValueError(f"{what}: {nbytes} bytes at {address:#x} are not in the memory of one tensor: {_nearest(address)}")


def _nearest(address: int) -> str:
    """What is there instead."""
    for start, storage in _runtime.current().world.exported.items():
        if start <= address < start + storage.nbytes:
            return f"the one there has {start + storage.nbytes - address} bytes from there on"
    return "no tensor's data_ptr() is there; make_tensor_arg(tensor) gives the address with the tensor's size"


def bytes_at(address: int, nbytes: int, what: str) -> np.ndarray:
    """The bytes themselves, to be read and written. As storage_at."""
    storage = storage_at(address, nbytes, what)
    at = address - storage.data_ptr()
    found, _ = storage.array(dtypes.uint8, (nbytes,), (1,), at, True)
    return found
