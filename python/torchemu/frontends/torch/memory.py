"""Tensors as the core sees them: regions of memory."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from torchemu import runtime
from torchemu.bridge.binding import go
from torchemu.bridge.handles import Handle
from torchemu.bridge.ints import Ints
from torchemu.runtime import memory_notes

_data_ptr = torch._C.TensorBase.data_ptr
_start = torch._C.StorageBase.data_ptr

_CONTIGUOUS = -1  # in the place of the number of dimensions; see pybind/raw.go

_NAMES = (
    *("bool", "uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64"),
    *("float8_e4m3fn", "float8_e5m2", "float16", "bfloat16", "float32", "float64", "complex64", "complex128"),
)

_NUMBERS: dict[torch.dtype, int] = {getattr(torch, name): go.DTypeNumber(name) for name in _NAMES}

_STRIDED = torch.strided

_AS_BYTES = go.DTypeNumber("uint8")


def regions(tensors: Sequence[torch.Tensor]) -> Ints:
    """Packs what the core is told of tensors. Their memory is to be kept until it needs it no more.

    Raises:
        RuntimeError: a tensor is not strided, or its elements have a type that nothing can be done with.
    """
    if len(tensors) == 1:
        one = tensors[0]
        number = _NUMBERS.get(one.dtype)
        if (
            number is not None
            and not runtime.current().world.ordered
            and one.layout is _STRIDED
            and one.is_contiguous()
        ):
            return Ints((_address(one), number, _CONTIGUOUS, one.numel()))
    return _regions(tensors)


def _regions(tensors: Sequence[torch.Tensor]) -> Ints:
    told: list[int] = []
    ordered = runtime.current().world.ordered
    for tensor in tensors:
        if ordered:
            told.extend(_part(tensor))
        number = _NUMBERS.get(tensor.dtype)
        if number is None:
            number = _moved(tensor)
        if tensor.layout is not _STRIDED:
            raise RuntimeError(f"unsupported layout: {tensor.layout}")
        if tensor.is_contiguous():
            told.extend((_address(tensor), number, _CONTIGUOUS, tensor.numel()))
        else:
            told.extend((_address(tensor), number, tensor.dim(), *tensor.shape, *tensor.stride()))
    return Ints(told)


def _part(tensor: torch.Tensor) -> tuple[int, ...]:
    """Returns of which memory a tensor's is a part, and from which byte on, for those who look for uses that nothing
    orders; nothing where it has none."""
    if tensor.layout is not torch.strided or not _address(tensor) or not tensor.numel():
        return ()
    storage = tensor.untyped_storage()
    return -whole(storage), _data_ptr(tensor) - _start(storage)


def whole(storage: torch.UntypedStorage) -> int:
    """Returns the core's tensor of all bytes of a storage, which knows what has used them."""
    place = _start(storage), storage.nbytes()
    known: tuple[Handle, tuple[int, int]] | None = getattr(storage, "_known", None)
    if known is None or known[1] != place:
        world = runtime.current().world
        number = go.WrapMemory(world.handle, "uint8", (place[1],), *place)
        known = storage._known = Handle(number), place
        noted: memory_notes.Noted | None = getattr(storage, "_noted", None)
        if noted:
            memory_notes.tell(runtime.current(), number, noted)
        piece = getattr(storage, "_piece", None)
        if piece is not None and world.ordered:
            piece.know(number)
    return known[0].number


def forget(storage: torch.UntypedStorage) -> None:
    """Forgets what has used the bytes of a storage, which it has given back: those that it gets next are others, though
    they may have the same address."""
    for name in ("_known", "_noted"):
        vars(storage).pop(name, None)


def _address(tensor: torch.Tensor) -> int:
    """Returns the address of the first element; 0 where tensors have no memory."""
    return 0 if tensor.is_meta or type(tensor).__name__ == "FakeTensor" else _data_ptr(tensor)


def _moved(tensor: torch.Tensor) -> int:
    """The type that elements, which can be moved only, are moved as."""
    if tensor.element_size() != 1:
        raise RuntimeError(f"collectives of {tensor.dtype} are not supported")
    return _AS_BYTES
