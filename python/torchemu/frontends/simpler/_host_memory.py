"""The host's memory as programs name it: by address."""

from __future__ import annotations

import numpy as np

from torchemu import dtypes, runtime
from torchemu.frontends.numpy._tensor.core import all_bytes
from torchemu.frontends.numpy._tensor.storage import Storage


def storage_at(address: int, nbytes: int, what: str) -> Storage:
    """The memory of tensors that so many bytes from an address on are in. What is to be there is.

    Raises:
        ValueError: they are not in the memory of one tensor whose address the program has asked for.
    """
    start, storage = _around(address)
    there = f"{what}: {nbytes} bytes at {address:#x} are not in the memory of one tensor"
    if storage is None:
        raise ValueError(
            f"{there}: no tensor's data_ptr() is there; make_tensor_arg(tensor) gives the address and the size"
        )
    if address + nbytes > start + storage.nbytes:
        raise ValueError(f"{there}: the one there has {start + storage.nbytes - address} bytes from there on")
    whole = all_bytes(storage)
    whole.wait()
    storage.settle(whole, writes=True)
    return storage


def _around(address: int) -> tuple[int, Storage | None]:
    """The memory that an address is in, and where that begins."""
    return runtime.current().world.exported.holding(address) or (0, None)


def bytes_at(address: int, nbytes: int, what: str) -> np.ndarray:
    """The bytes themselves, to be read and written. As storage_at."""
    storage = storage_at(address, nbytes, what)
    at = address - storage.data_ptr()
    found, _ = storage.array(dtypes.uint8, (nbytes,), (1,), at, True)
    return found
