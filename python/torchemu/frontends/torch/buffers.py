"""PyTorch's tensors as device programs see them: elements in the memory of a storage, in place."""

from __future__ import annotations

import contextlib
import ctypes
import math
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch
from torch.utils._python_dispatch import _disable_current_modes

from torchemu import dtypes, runtime
from torchemu.bridge.binding import go
from torchemu.bridge.handles import Handle
from torchemu.frontends.torch.device import (
    deferral,
    device_program_memory,
    ordering,
    places,
    storages,
    streams,
    visible,
)
from torchemu.frontends.torch.device.ground import RankLocal, memory_use
from torchemu.frontends.torch.memory import whole
from torchemu.frontends.torch.session import Session
from torchemu.runtime import buffer
from torchemu.runtime.buffer import Buffer, Device, Form

_HOST = buffer.Place(buffer.HOST)


class StorageMemory:
    """The bytes of a storage, which keeps this and not the other way round.

    Attributes:
        address: of the first one.
        nbytes: how many.
    """

    __slots__ = ("__weakref__", "address", "nbytes")

    def __init__(self, address: int, nbytes: int) -> None:
        self.address, self.nbytes = address, nbytes

    def data_ptr(self) -> int:
        """Returns the address of the first byte."""
        return self.address


def _memory_of(tensor: torch.Tensor) -> StorageMemory:
    storage: Any = tensor.untyped_storage()
    address, nbytes = torch._C.StorageBase.data_ptr(storage), storage.nbytes()
    known: StorageMemory | None = getattr(storage, "_memory", None)
    if known is None or known.address != address or known.nbytes != nbytes:
        known = storage._memory = StorageMemory(address, nbytes)
    return known


class _Used(list[tuple[Any, Any]]):
    """The storages of buffers that launches use, each with its launch, where uses of freed memory are looked for."""

    def __init__(self) -> None:
        super().__init__()
        memory_use.current().in_kernels = self.left

    def left(self) -> Iterator[Any]:
        """Tells the pieces of memory of the storages that only buffers of launches which are not over have."""
        self[:] = [(storage, launch) for storage, launch in self if not launch.over]
        counts = Counter(id(storage) for storage, _ in self)
        for storage, _ in self:
            piece = getattr(storage, "_piece", None)
            users = torch._C._storage_Use_Count(storage._cdata)
            if piece is not None and users <= 1 + counts[id(storage)]:  # 1: its object in Python
                yield piece


_used: RankLocal[_Used] = RankLocal(_Used)


class TensorBuffer:
    """The elements of a tensor; see Buffer.

    Args:
        tensor: the tensor, which this keeps.

    Raises:
        RuntimeError: it has no elements in memory: it is sparse, say.
    """

    def __init__(self, tensor: torch.Tensor) -> None:
        if tensor.is_meta or tensor.layout is not torch.strided:
            what = "without elements" if tensor.is_meta else f"of layout {tensor.layout}"
            raise RuntimeError(f"device programs work on elements in memory, and cannot use a tensor {what}")
        self.tensor = tensor.detach()
        self.memory = _memory_of(tensor)
        self.world = runtime.current_world()

    @property
    def core_handle(self) -> int:
        """The core's tensor of all of the memory, where a World is checked: kernels on one stream and operations on
        another one are to be seen together. In a backward pass PyTorch orders its streams; see device/ordering.py."""
        if not self.world.ordered or not self.memory.nbytes or torch._C._current_graph_task_id() != -1:
            return 0
        return whole(self.tensor.untyped_storage())

    @property
    def dtype(self) -> dtypes.dtype:
        """The type of the elements."""
        return dtypes.parse(str(self.tensor.dtype))

    @property
    def shape(self) -> tuple[int, ...]:
        """The dimensions."""
        return tuple(self.tensor.shape)

    @property
    def nbytes(self) -> int:
        """The bytes of all elements."""
        return self.tensor.nbytes

    @property
    def device(self) -> Device:
        """The device on which programs take them to be."""
        where = places.of(self.tensor)
        return _HOST if where is None else buffer.Place(index=visible.in_node(runtime.current(), where.number))

    def numel(self) -> int:
        """Returns the number of elements."""
        return self.tensor.numel()

    def stride(self) -> tuple[int, ...]:
        """Returns, for each dimension, the elements from one index to the next."""
        return tuple(self.tensor.stride())

    def storage_offset(self) -> int:
        """Returns the elements of the memory before the first one."""
        return int(self.tensor.storage_offset())

    def is_contiguous(self) -> bool:
        """Returns whether the elements lie in row-major order without gaps."""
        return self.tensor.is_contiguous()

    def settle(self) -> None:
        """Blocks this rank until all has ended that is on its stream."""
        device_program_memory.before_use([self.tensor])

    wait = settle


class Tensors(buffer.TensorClass):
    """PyTorch's tensors."""

    kind = torch.Tensor
    is_buffer = False

    def buffer(self, tensor: Any) -> Buffer:
        """Returns the tensor's elements."""
        return TensorBuffer(tensor)

    def form(self, tensor: Any) -> Form:
        """Returns what a tensor is like, without a use of its elements."""
        return Form(tuple(tensor.shape), str(tensor.dtype).removeprefix("torch."), not places.is_on_host(tensor))

    def default_dtype(self) -> dtypes.dtype:
        """Returns the rank's default dtype."""
        return dtypes.parse(str(torch.get_default_dtype()))

    def empty(self, shape: Sequence[int], kind: dtypes.dtype, on_host: bool = False) -> Any:
        """Returns a tensor of undefined elements."""
        return torch.empty(tuple(shape), dtype=getattr(torch, kind.name), device="cpu" if on_host else "cuda")

    def zeros(self, shape: Sequence[int], kind: dtypes.dtype, on_host: bool = False) -> Any:
        """Returns a tensor of zeros."""
        return torch.zeros(tuple(shape), dtype=getattr(torch, kind.name), device="cpu" if on_host else "cuda")

    def of_array(self, array: np.ndarray, on_host: bool = False) -> Any:
        """Returns a tensor of an array's elements."""
        return torch.tensor(array, device="cpu" if on_host else "cuda")

    def of_core(self, world: runtime.World, core: Handle, kind: dtypes.dtype, shape: Sequence[int]) -> Any:
        """Returns a tensor, on this rank's device, of memory that the core's tensor owns, and other ranks write."""
        nbytes = math.prod(shape) * kind.itemsize
        raw = (ctypes.c_uint8 * nbytes).from_address(go.ExportAddress(core.number))
        made = torch.frombuffer(raw, dtype=getattr(torch, kind.name)).view(tuple(shape))
        storage: Any = made.untyped_storage()
        storage._core = core
        places.name(made, places.place("cuda", visible.of_rank(runtime.current())))
        device_program_memory.note_symmetric(storage)
        return made

    def array(self, tensor: Any) -> np.ndarray:
        """Returns the elements, for which the host waits."""
        found: np.ndarray = tensor.detach().cpu().numpy()
        return found

    def has_nan(self, tensor: Any) -> bool:
        """Returns whether there is a NaN, which an operation of the tensor's device finds."""
        return bool(tensor.isnan().any())

    @contextlib.contextmanager
    def new_stream(self) -> Iterator[int]:
        """Makes a new stream the current one for the duration of a with block, and gives its handle."""
        with streams.Stream() as stream:
            yield stream.handle

    def holding(self, address: int) -> Any:
        """Returns a tensor of the memory that a place is in."""
        found = storages.asked.get().holding(address)
        if found is None:
            return None
        with _disable_current_modes():
            return torch.empty(0, dtype=torch.uint8).set_(found[1])

    def launching(self, name: str, buffers: Sequence[Buffer]) -> None:
        """Puts all on the rank's stream that a kernel comes after which uses buffers."""
        used = [b.tensor for b in buffers if isinstance(b, TensorBuffer)]
        deferral.before_use(used)
        for tensor in used:
            if not device_program_memory.may_have_words(used, tensor):
                ordering.look(runtime.current(), name, [tensor])

    def launched(self, buffers: Sequence[Buffer], launch: Any) -> None:
        """Notes that a launch uses buffers until its attribute `over` is true."""
        for used in buffers:
            if isinstance(used, TensorBuffer):
                device_program_memory.note(used.tensor.untyped_storage(), launch)
                if used.world.ordered:
                    _used.get().append((used.tensor.untyped_storage(), launch))


class WithoutElements(Tensors):
    """Tensors of a run without data, which device programs cannot use: they have types, shapes and places."""

    has_elements = False

    def buffer(self, tensor: Any) -> Buffer:
        """Returns what is known of the tensor's elements."""
        return TensorBuffer(tensor) if not tensor.is_meta or places.of(tensor) is None else HollowBuffer(tensor)

    def of_core(self, world: runtime.World, core: Handle, kind: dtypes.dtype, shape: Sequence[int]) -> Any:
        """Raises RuntimeError."""
        raise RuntimeError(_NO_ELEMENTS)


_NO_ELEMENTS = "device programs work on elements, of which a run with --no-data has none"


class HollowMemory(StorageMemory):
    """The bytes that a storage would have."""

    __slots__ = ()

    def data_ptr(self) -> int:
        """Raises RuntimeError."""
        raise RuntimeError(_NO_ELEMENTS)


class HollowBuffer(TensorBuffer):
    """The elements that a tensor would have.

    Args:
        tensor: the tensor, which this keeps.
    """

    def __init__(self, tensor: torch.Tensor) -> None:
        storage: Any = tensor.untyped_storage()
        self.tensor, self.world = tensor.detach(), runtime.current_world()
        known: HollowMemory | None = getattr(storage, "_memory", None)
        if known is None or known.nbytes != storage.nbytes():
            known = storage._memory = HollowMemory(0, storage.nbytes())
        self.memory = known


def install(run: Session) -> None:
    """Lets device programs use PyTorch's tensors until the run ends."""
    tensors = Tensors() if run.data else WithoutElements()
    buffer.register(tensors)
    run.stack.callback(buffer.forget, tensors)
    run.world.tensors = tensors
