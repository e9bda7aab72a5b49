"""Storages on simulated devices: made, copied, resized, saved and loaded."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch

from torchemu.frontends.torch.device import device_program_memory, elements, places, reading
from torchemu.frontends.torch.device.ground import OutOfMemoryError, RankLocal, context, go, memory_use
from torchemu.frontends.torch.device.patches import Replacements
from torchemu.frontends.torch.device.places import Place
from torchemu.frontends.torch.memory import forget
from torchemu.runtime.exported_memory import Exported

_class = torch.UntypedStorage
_raw_device = torch._C.StorageBase.device.__get__
_raw_data_ptr = torch._C.TensorBase.data_ptr
_raw_start = torch._C.StorageBase.data_ptr
_raw_resize = torch._C.StorageBase.resize_
_raw_write_file = torch._C.StorageBase._write_file


def put(replaced: Replacements) -> None:
    """Puts all of it in place."""
    replaced.put_all(
        _class,
        {
            "device": property(_device),
            "is_cuda": property(lambda self: _device(self).type == "cuda"),
            "__new__": staticmethod(_new),
            "to": _to,
            "cuda": _cuda,
            "cpu": _cpu,
            "resize_": _resize,
            "data_ptr": _start,
            "_write_file": _write_file,
            "get_device": lambda self: -1 if _device(self).index is None else _device(self).index,
            "is_pinned": lambda self, device="cuda": places.is_pinned_storage(self),
        },
    )


def count(storage: Any) -> None:
    """Counts the memory of a storage of a device.

    Raises:
        torch.OutOfMemoryError: the device has not so much memory left.
    """
    try:
        storage._piece = memory_use.current().take(storage, storage.nbytes())
    except OutOfMemoryError as error:
        raise torch.OutOfMemoryError(str(error)) from None


asked: RankLocal[Exported] = RankLocal(lambda: Exported(lambda storage: int(storage.nbytes())))
"""A rank's storages of devices of which the program has asked where they are."""


def data_ptr(self: torch.Tensor) -> int:
    """Tensor.data_ptr."""
    address = _raw_data_ptr(self)
    if not self.numel():
        return address
    storage: Any = self.untyped_storage()
    if getattr(storage, "_place", None) is None:
        return address
    memory = _raw_start(storage)
    if not memory:
        return _start(storage) + self.storage_offset() * self.itemsize
    asked.get().add(memory, storage)
    return address


def _start(self: Any) -> int:
    """UntypedStorage.data_ptr. Without elements a storage has an address all the same, which programs may compare: no
    other storage of its rank has it, and those without bytes have none."""
    address = int(_raw_start(self))
    if address or not self.nbytes() or getattr(self, "_place", None) is None:
        return address
    room: _Room | None = getattr(self, "_room", None)
    if room is None or room.nbytes < self.nbytes():
        room = self._room = _addresses.get().take(self.nbytes())
    return room.start


class _Room(NamedTuple):
    """Addresses of bytes that are nowhere."""

    start: int
    nbytes: int


class _Addresses:
    """The addresses of a rank that no memory has."""

    def __init__(self) -> None:
        self._next = _FIRST

    def take(self, nbytes: int) -> _Room:
        """Returns addresses of so many bytes, in blocks as PyTorch's allocator has them."""
        room = _Room(self._next, memory_use.in_blocks(nbytes))
        self._next += room.nbytes
        return room


_FIRST = 0x7000_0000_0000_0000
"""An address that no memory of a process has on machines with 64 bits."""

_addresses: RankLocal[_Addresses] = RankLocal(_Addresses)


def _device(self: Any) -> torch.device:
    where: Place | None = getattr(self, "_place", None)
    return _raw_device(self) if where is None else where.device


def _new(cls: Any, *args: Any, device: Any = None, **kwargs: Any) -> Any:
    want = places.meant(device)
    if want is None:
        return torch._C.StorageBase.__new__(cls, *args, **kwargs)
    if not places.is_simulated(want):
        return torch._C.StorageBase.__new__(cls, *args, device=want, **kwargs)
    if not elements.are_made():
        kwargs["device"] = places.META
    made = torch._C.StorageBase.__new__(cls, *args, **kwargs)
    count(made)
    made._place = places.found(want)
    return made


def _to(self: Any, *, device: Any, non_blocking: bool = False) -> Any:
    want = torch.device(device) if isinstance(device, str) else device
    want = places.meant(want)
    if want == _device(self):
        return self
    return torch.UntypedStorage(self.nbytes(), device=want).copy_(self, non_blocking)


def _cuda(self: Any, device: Any = None, non_blocking: bool = False) -> Any:
    return _to(self, device=torch.device("cuda") if device is None else device, non_blocking=non_blocking)


def _cpu(self: Any) -> Any:
    """UntypedStorage.cpu: bytes that are nowhere are zeros on the host."""
    if _device(self).type == "cpu":
        return self
    made = _class(self.nbytes())
    if _raw_device(self).type != "meta":
        return made.copy_(self, False)
    go.LaunchCopy(context().stream, self.nbytes(), True)
    reading.catch_up()
    return made.fill_(0)


def _write_file(self: Any, *args: Any, **kwargs: Any) -> None:
    """UntypedStorage._write_file, by which tensors are pickled: it copies what is on a device to the host first, which
    waits for the device."""
    _raw_write_file(self if _device(self).type == "cpu" else self.cpu(), *args, **kwargs)


def _resize(self: Any, nbytes: int) -> Any:
    device_program_memory.before_move(self)
    before = self.nbytes()
    _raw_resize(self, nbytes)
    try:
        count_again(self, before)
    except torch.OutOfMemoryError:
        _raw_resize(self, before)
        raise
    if not nbytes:
        forget(self)
    return self


def record_stream(self: torch.Tensor, stream: Any) -> None:
    """Has a stream's work over before the tensor's memory is given to others."""
    piece = getattr(self.untyped_storage(), "_piece", None)
    if piece is not None and context().world.ordered:
        piece.waited.append(int(stream.stream_id))


def count_again(storage: Any, before: int) -> None:
    """Counts the memory of a storage that had so many bytes before.

    Raises:
        torch.OutOfMemoryError: the device has not so much memory left.
    """
    piece, nbytes = getattr(storage, "_piece", None), storage.nbytes()
    if piece is None or nbytes == before:
        return
    try:
        memory_use.current().resize(piece, nbytes)
    except OutOfMemoryError as error:
        raise torch.OutOfMemoryError(str(error)) from None
