"""Buffers: elements in a rank's memory, as collectives, messages and kernels use them.

A front end registers its class of tensors here: with a :class:`TensorClass`, which says how a tensor of it becomes a
buffer, and how one is made. What is below the front ends takes any registered class, and hands back the tensors that it
was given. A class that has the attributes of :class:`Buffer` itself is its own buffer; others become a :class:`Region`.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np

from torchemu import dtypes, runtime
from torchemu.bridge.binding import go
from torchemu.bridge.handles import Handle
from torchemu.runtime.outstanding import Elements

HOST = "cpu"
"""The type of device that is the memory of the rank's host."""

ACCELERATORS = ("ahbm", "cuda")
"""Types of devices that are SIPs. Both mean the same."""


class Device(Protocol):
    """The place of a buffer, as programs name it.

    Attributes:
        type: "cpu", or one of ACCELERATORS.
        index: the number of the SIP on its node; None is the current one.
        is_host: whether programs take it for the memory of the host.
        is_sip: whether operations on it are those of a SIP.
    """

    @property
    def type(self) -> str: ...
    @property
    def index(self) -> int | None: ...
    @property
    def is_host(self) -> bool: ...
    @property
    def is_sip(self) -> bool: ...


@dataclass(frozen=True)
class Place:
    """A device of a front end that has no class of its own for them."""

    type: str = ACCELERATORS[0]
    index: int | None = None

    @property
    def is_host(self) -> bool:
        """Says whether it is the memory of the host."""
        return self.type == HOST

    @property
    def is_sip(self) -> bool:
        """Says whether it is a SIP."""
        return self.type in ACCELERATORS

    def __str__(self) -> str:
        return self.type if self.index is None else f"{self.type}:{self.index}"


class Memory(Protocol):
    """A run of bytes that tensors are views of. It can be weakly referenced, and is equal to itself only.

    Attributes:
        nbytes: its length.
    """

    @property
    def nbytes(self) -> int: ...

    def data_ptr(self) -> int:
        """Returns the address of the first byte, which does not change any more; 0 where there are none."""


class Buffer(Protocol):
    """Elements in memory.

    Attributes:
        world: the World that they belong to.
        dtype: their type.
        shape: their dimensions.
        nbytes: the bytes of all elements.
        device: where they are.
        memory: the run of bytes that they lie in.
        core_handle: of the Go core's tensor; 0 where the front end itself keeps the order of what uses the elements.
            Whoever asks for it may set an operation going.
    """

    @property
    def world(self) -> runtime.World: ...
    @property
    def dtype(self) -> dtypes.dtype: ...
    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def nbytes(self) -> int: ...
    @property
    def device(self) -> Device: ...
    @property
    def memory(self) -> Memory: ...
    @property
    def core_handle(self) -> int: ...

    def numel(self) -> int:
        """Returns the number of elements."""

    def stride(self) -> Any:
        """Returns, for each dimension, the elements from one index to the next."""

    def storage_offset(self) -> int:
        """Returns the elements of the memory before the first one."""

    def is_contiguous(self) -> bool:
        """Returns whether the elements lie in row-major order without gaps."""

    def settle(self) -> None:
        """Blocks this rank until the results of operations on the elements are in place: in no simulated time."""

    def wait(self) -> Any:
        """Blocks this rank until the operations on the elements have ended in simulated time, too."""


# -- memory of a front end that has nothing of the kind itself


class Bytes:
    """Memory that somebody else owns.

    Args:
        owner: what is kept as long as operations use the memory.
        address: of the first byte.
        nbytes: the length.

    Raises:
        ValueError: a negative length, or bytes at no address.
    """

    def __init__(self, owner: object, address: int, nbytes: int) -> None:
        if nbytes < 0 or (nbytes and not address):
            raise ValueError(f"there are no {nbytes} bytes at address {address:#x}")
        self.owner, self.address, self.nbytes = owner, address, nbytes

    def data_ptr(self) -> int:
        """Returns the address of the first byte."""
        return self.address if self.nbytes else 0

    def array(self) -> np.ndarray:
        """Returns the bytes, in place. The array keeps the owner."""
        return np.asarray(_Shown(self)) if self.nbytes else np.empty(0, np.uint8)


class _Shown:
    """Shows NumPy the bytes, and keeps them as long as NumPy looks."""

    def __init__(self, of: Bytes) -> None:
        self.of = of
        self.__array_interface__ = {
            "version": 3,
            "shape": (of.nbytes,),
            "typestr": "|u1",
            "data": (of.address, False),
        }


class Region:
    """Elements in memory that a front end owns.

    Args:
        memory: the bytes.
        dtype: the type of the elements.
        shape: their dimensions.
        strides: for each dimension, the elements from one index to the next, not negative; None is row-major.
        offset: the elements of the memory before the first one.
        device: where programs take them to be; None is the SIP of the running rank.

    Raises:
        ValueError: the elements do not lie in the memory; a stride is negative, or there are not as many as dimensions.
    """

    def __init__(
        self,
        memory: Bytes,
        dtype: dtypes.dtype,
        shape: Sequence[int],
        strides: Sequence[int] | None = None,
        offset: int = 0,
        device: Device | None = None,
    ) -> None:
        context = runtime.current()
        self.world, self.memory, self.dtype = context.world, memory, dtype
        self.shape: tuple[int, ...] = tuple(shape)
        self._strides = row_major(self.shape) if strides is None else tuple(strides)
        self._offset = offset
        self.device: Device = Place(index=context.own_device) if device is None else device
        self._core: Handle | None = None
        self._check()

    @classmethod
    def of_array(cls, array: np.ndarray, device: Device | None = None) -> Region:
        """Returns the elements of a NumPy array, in place.

        Raises:
            TypeError: there is no such dtype.
            ValueError: a stride is negative, or no multiple of the size of an element.
        """
        size = array.itemsize
        if any(step % size for step in array.strides):
            raise ValueError(f"strides of {array.strides} bytes are no multiples of the {size} bytes of an element")
        strides = tuple(step // size for step in array.strides)
        address = array.__array_interface__["data"][0]
        reach = 0 if not array.size else sum((n - 1) * s for n, s in zip(array.shape, strides, strict=True)) + 1
        memory = Bytes(array, address, max(reach, 0) * size)
        return cls(memory, dtypes.of_numpy(array), array.shape, strides, device=device)

    def _check(self) -> None:
        if len(self._strides) != len(self.shape):
            raise ValueError(f"{len(self._strides)} strides for the {len(self.shape)} dimensions of {self.shape}")
        if any(n < 0 for n in (*self.shape, *self._strides, self._offset)):
            raise ValueError(f"a shape, stride or offset is negative: {self.shape}, {self._strides}, {self._offset}")
        last = self._offset + sum((n - 1) * s for n, s in zip(self.shape, self._strides, strict=True))
        if self.numel() and (last + 1) * self.dtype.itemsize > self.memory.nbytes:
            raise ValueError(
                f"elements of shape {self.shape} and strides {self._strides} from {self._offset} on do not lie in "
                f"{self.memory.nbytes} bytes"
            )

    @property
    def nbytes(self) -> int:
        """The bytes of all elements."""
        return self.numel() * self.dtype.itemsize

    @property
    def core_handle(self) -> int:
        """The Go core's tensor, which the core is told of when it is first asked for."""
        if self._core is None:
            self._core = self._told()
        return self._core.number

    def _told(self) -> Handle:
        world, kind, lent = self.world, self.dtype, self.memory.array()
        address, nbytes = self.memory.data_ptr(), self.memory.nbytes
        whole = Handle(
            go.WrapMemory(world.handle, kind.name, (nbytes // kind.itemsize,), address, nbytes), world.lent, lent
        )
        view = go.ViewTensor(whole.number, self.shape, self._strides, self._offset)
        return Handle(view, world.lent, lent)

    def numel(self) -> int:
        """Returns the number of elements."""
        return math.prod(self.shape)

    def stride(self) -> tuple[int, ...]:
        """Returns, for each dimension, the elements from one index to the next."""
        return self._strides

    def storage_offset(self) -> int:
        """Returns the elements of the memory before the first one."""
        return self._offset

    def is_contiguous(self) -> bool:
        """Returns whether the elements lie in row-major order without gaps."""
        steps = zip(self._strides, row_major(self.shape), self.shape, strict=True)
        return 0 in self.shape or all(s == r for s, r, n in steps if n > 1)

    def settle(self) -> None:
        """Blocks this rank until the results of operations on the elements are in place: in no simulated time.

        Raises:
            RuntimeError: an operation has failed, or the World is closed.
        """
        if self._core is None:
            return
        event = go.Settled(self._core.number, True)
        if event > 0:
            try:
                runtime.current().wait(event)
            finally:
                go.Release(event)

    def wait(self) -> None:
        """Blocks this rank until the operations on the elements have ended in simulated time, too. Errors as settle."""
        if self._core is not None:
            runtime.current().wait(self._core.number)

    def array(self) -> np.ndarray:
        """Returns the elements in place, as NumPy sees them. It does not wait for them."""
        size = self.dtype.itemsize
        steps = tuple([step * size for step in self._strides])
        start = self._offset * size if self.numel() else 0
        return np.ndarray(self.shape, self.dtype.numpy, self.memory.array(), start, steps)


def row_major(shape: Sequence[int]) -> tuple[int, ...]:
    """Returns the strides of elements that lie one after another, the last dimension fastest."""
    strides = [1] * len(shape)
    for i in range(len(shape) - 2, -1, -1):
        strides[i] = strides[i + 1] * max(shape[i + 1], 1)
    return tuple(strides)


def elements(tensor: Any) -> Elements | None:
    """Returns where a tensor's elements are; None for what is no tensor of a registered class."""
    buffer = buffer_of(tensor)
    if buffer is None:
        return None
    size = buffer.dtype.itemsize
    steps = tuple([step * size for step in buffer.stride()])
    return Elements(buffer.memory, buffer.storage_offset() * size, tuple(buffer.shape), steps, size)


# -- classes of tensors


class Form(NamedTuple):
    """A tensor without its elements.

    Attributes:
        shape: the dimensions.
        dtype: the name of the elements' type.
        on_sip: whether they are in a SIP's memory.
    """

    shape: tuple[int, ...]
    dtype: str
    on_sip: bool


class TensorClass:
    """A front end's class of tensors, as c10d and the kernel language need it. This one is that of regions, which
    programs have where no front end is in use; a front end's is derived from it.

    Attributes:
        kind: the class.
        is_buffer: its tensors have all attributes of Buffer.
        has_elements: its tensors on devices have elements; or else a run is for its times only.
    """

    kind: type = Region
    is_buffer: bool = True
    has_elements: bool = True

    def buffer(self, tensor: Any) -> Buffer:
        """Returns the tensor's elements: the same buffer each time, as long as the tensor has the same memory."""
        return tensor

    def form(self, tensor: Any) -> Form:
        """Returns what a tensor is like, without a use of its elements."""
        buffer = self.buffer(tensor)
        return Form(tuple(buffer.shape), buffer.dtype.name, buffer.device.is_sip)

    def whole(self, parts: Sequence[Any]) -> Buffer | None:
        """Returns the buffer of which tensors are the equal parts, one after another; None where it is not known."""
        return None

    def default_dtype(self) -> dtypes.dtype:
        """Returns the type of a new tensor's elements where the program names none."""
        return dtypes.float32

    def empty(self, shape: Sequence[int], kind: dtypes.dtype, on_host: bool = False) -> Any:
        """Returns a tensor of undefined elements, on this rank's device or in its host's memory."""
        return self.of_array(np.empty(tuple(shape), kind.numpy), on_host)

    def zeros(self, shape: Sequence[int], kind: dtypes.dtype, on_host: bool = False) -> Any:
        """Returns a tensor of zeros, as empty does."""
        return self.of_array(np.zeros(tuple(shape), kind.numpy), on_host)

    def of_array(self, array: np.ndarray, on_host: bool = False) -> Any:
        """Returns a tensor of a contiguous array's elements, which it may share."""
        return Region.of_array(array, Place(HOST) if on_host else None)

    def of_core(self, world: runtime.World, core: Handle, kind: dtypes.dtype, shape: Sequence[int]) -> Any:
        """Returns a contiguous tensor, on this rank's device, of memory that the core's tensor owns."""
        nbytes = math.prod(shape) * kind.itemsize
        return Region(Bytes(core, go.ExportAddress(core.number), nbytes), kind, shape)

    def stand_beside(self, theirs: Any, own: Any) -> None:
        """Makes whoever uses a tensor of another rank's memory wait for what is under way on the rank's own in the same
        place, where the class does not see to that itself."""

    def holding(self, address: int) -> Any:
        """Returns a tensor of all bytes of the memory that a place in the process is in, if the program has asked where
        that is; None otherwise."""
        return None

    def launching(self, name: str, buffers: Sequence[Buffer]) -> None:
        """Puts all on the rank's stream that a kernel comes after, which is to be launched and uses buffers."""

    def launched(self, buffers: Sequence[Buffer], launch: Any) -> None:
        """Notes that a launch uses buffers until its attribute `over` is true."""

    @contextlib.contextmanager
    def new_stream(self) -> Iterator[int]:
        """Makes a new stream of this rank the current one for the duration of a with block, and gives its handle."""
        context = runtime.current()
        stream, before = Handle(go.NewStream(context.world.handle, context.rank)), context.stream
        context.stream = stream.number
        try:
            yield stream.number
        finally:
            context.stream = before

    def array(self, tensor: Any) -> np.ndarray:
        """Returns the elements of a tensor, for which the host waits. They are not to be written."""
        buffer = self.buffer(tensor)
        buffer.wait()
        assert isinstance(buffer, Region)
        return buffer.array()

    def has_nan(self, tensor: Any) -> bool:
        """Returns whether there is a NaN among a tensor's elements, for which the host waits."""
        return bool(np.isnan(self.array(tensor)).any())


_REGIONS = TensorClass()
_classes: dict[type, TensorClass] = {Region: _REGIONS}
BUFFERS: set[type] = {Region}
"""The classes whose tensors are their own buffers: where calls are many this is looked up without a call."""

_latest = _REGIONS  # what programs have that have not chosen


def register(tensors: TensorClass) -> None:
    """Makes a front end's class of tensors known, and that of programs which do not choose another."""
    global _latest
    _classes[tensors.kind] = _latest = tensors
    if tensors.is_buffer:
        BUFFERS.add(tensors.kind)


def forget(tensors: TensorClass) -> None:
    """Undoes register; programs have the class that was registered before it."""
    global _latest
    del _classes[tensors.kind]
    BUFFERS.discard(tensors.kind)
    _latest = next(reversed(_classes.values()))


def choose(tensors: TensorClass) -> None:
    """Makes a registered class that of the programs of the current World, where nothing else tells it."""
    runtime.current_world().tensors = tensors


def chosen() -> TensorClass:
    """Returns the class of tensors that programs of the current World have."""
    return runtime.current_world().tensors or _latest


def class_of(tensor: object) -> TensorClass | None:
    """Returns the class that a value is of, or derived from; None for what is no tensor."""
    found = _classes.get(type(tensor))
    if found is not None:
        return found
    return next((_classes[kind] for kind in type(tensor).__mro__ if kind in _classes), None)


def buffer_of(value: Any) -> Any:
    """Returns the buffer of a tensor of any registered class; None for what is no tensor."""
    if type(value) in BUFFERS:
        return value
    found = class_of(value)
    return None if found is None else found.buffer(value)


def form_of(tensor: Any) -> Form:
    """Returns what a tensor of a registered class is like."""
    found = class_of(tensor)
    assert found is not None
    return found.form(tensor)


# -- memory of other ranks

_afar: list[Callable[[Any, Any], bool]] = []


def copy_afar_by(copy: Callable[[Any, Any], bool]) -> None:
    """Makes a function the one that copies between tensors of which one is another rank's memory: it puts the copy on
    the current stream, or returns False where neither is."""
    if copy not in _afar:
        _afar.append(copy)


def copied_afar(target: Any, source: Any) -> bool:
    """Returns whether a copy between two tensors has been put on the current stream, because one is another rank's."""
    return any(copy(target, source) for copy in _afar)
