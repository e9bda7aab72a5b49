"""Tensor: elements of one type in a shape, in memory that views share."""

from __future__ import annotations

import functools
import inspect
import math
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeVar, cast

import numpy as np

from torchemu import dtypes, runtime
from torchemu.bridge.handles import Handle
from torchemu.frontends.numpy._absent import TensorType
from torchemu.frontends.numpy._device import UNNAMED, device
from torchemu.frontends.numpy._placement import WHOLE, DPPolicy
from torchemu.frontends.numpy._shape import Size, row_major
from torchemu.frontends.numpy._tensor.conversion import check_number
from torchemu.frontends.numpy._tensor.storage import Storage, reach_of
from torchemu.multiprocessing._shared import share
from torchemu.runtime import memory_use

if TYPE_CHECKING:
    from torchemu.frontends.numpy._autograd.node import Node
    from torchemu.frontends.numpy._autograd.variable import AutogradMeta, Versions
    from torchemu.frontends.numpy._tensor.operators import Operators
else:
    Operators = object

HOST_READS = (
    "__array__",
    "__bool__",
    "__complex__",
    "__contains__",
    "__float__",
    "__format__",
    "__index__",
    "__int__",
    "__reduce_ex__",
    "__repr__",
    "allclose",
    "bincount",
    "cpu",
    "equal",
    "item",
    "masked_select",
    "nonzero",
    "numpy",
    "tolist",
    "unique",
)
"""The methods by which a host program learns about a tensor's elements. They wait for the operations pending on the
tensor to end in simulated time. So do ``t[mask]`` and ``t.to("cpu")``; nothing else does."""


def _looked(name: str, t: Tensor) -> None:
    """Says that the host looks at a tensor."""
    from torchemu.frontends.numpy._tensor import memory_uses

    memory_uses.touch(name, (t,), (), waits=True)


def waits(method: Callable[..., Any]) -> Callable[..., Any]:
    """A method of HOST_READS: it first waits for the tensors that it is given."""

    @functools.wraps(method)
    def read(*args: Any, **kwargs: Any) -> Any:
        for t in (*args, *kwargs.values()):
            if isinstance(t, Tensor):
                if t._storage.world.watches:
                    _looked(method.__name__, t)
                t.wait()
        return method(*args, **kwargs)

    return read


METHODS: dict[str, Callable[..., Any]] = {}
"""The functions that are methods of Tensor too, by the names of the methods."""

F = TypeVar("F", bound=Callable[..., Any])


def method(function: F) -> F:
    """Makes a function a method of Tensor, of the same name."""
    called = with_numpy_names(function)
    METHODS[function.__name__] = called
    return called


_NUMPY_NAMES = {"axis": "dim", "keepdims": "keepdim"}
"""NumPy's names of arguments, which PyTorch takes as well."""


def with_numpy_names(function: F) -> F:
    """Lets a function be called with NumPy's names of the arguments that it has under PyTorch's."""
    has = inspect.signature(function).parameters
    names = {other: own for other, own in _NUMPY_NAMES.items() if own in has and other not in has}
    if not names:
        return function

    @functools.wraps(function)
    def called(*args: Any, **kwargs: Any) -> Any:
        if kwargs:
            kwargs = {names.get(name, name) if names.get(name) not in kwargs else name: kwargs[name] for name in kwargs}
        return function(*args, **kwargs)

    return cast(F, called)


class Tensor(Operators, metaclass=TensorType):
    """A tensor on one device. Its operations are in the other modules of this package; see methods.py.

    ``Tensor(2, 3)`` is an uninitialized one and ``Tensor([1, 2])`` one of the numbers, both of the default dtype.

    Attributes:
        dtype: the element type.
        device: the SIP it is on, or the host.
        dp: the DPPolicy it was made with; how it is sharded within the SIP.
        name: what the program called it, or "".
        requires_grad, grad, grad_fn: for autograd.
    """

    dtype: dtypes.dtype
    device: device
    dp: DPPolicy = WHOLE
    name: str = ""
    requires_grad: bool
    grad: Tensor | None
    grad_fn: Node | None
    data: Tensor

    _storage: Storage
    _shape: tuple[int, ...]
    _strides: tuple[int, ...] | None = None  # None: row-major
    _offset: int = 0
    _array: np.ndarray | None = None  # the elements, where they stay in their place
    _core: Handle | None = None
    _autograd: AutogradMeta | None = None
    _base: Tensor | None = None  # of a view: what it is a view of, which is none itself
    _versions: Versions | None = None  # None: its memory's

    __array_priority__ = 1000

    def __new__(cls, *args: Any, device: Any = None) -> Tensor:
        from torchemu.frontends.numpy._tensor.from_data import legacy

        return legacy(cls, args, device)

    def wait(self) -> None:
        """Blocks this rank until the operations pending on the tensor have ended.

        Raises:
            RuntimeError: one of them failed; the World is closed, or belongs to another thread or process.
        """
        storage = self._storage
        if storage.pending or not storage.world.is_here:
            storage.wait(self)

    # -- shape

    @property
    def world(self) -> runtime.World:
        """The World that the tensor belongs to."""
        return self._storage.world

    @property
    def shape(self) -> Size:
        """The dimensions."""
        return Size(self._shape)

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return len(self._shape)

    @property
    def itemsize(self) -> int:
        """Bytes an element."""
        return self.dtype.itemsize

    @property
    def nbytes(self) -> int:
        """The number of bytes of the elements."""
        return math.prod(self._shape) * self.dtype.itemsize

    def dim(self) -> int:
        """The number of dimensions."""
        return len(self._shape)

    def numel(self) -> int:
        """The number of elements."""
        return math.prod(self._shape)

    def element_size(self) -> int:
        """Bytes an element."""
        return self.dtype.itemsize

    def size(self, dim: int | None = None) -> Size | int:
        """The shape, or one dimension of it."""
        return Size(self._shape) if dim is None else self._shape[axis_of(dim, len(self._shape))]

    def stride(self, dim: int | None = None) -> tuple[int, ...] | int:
        """Elements from one index of each dimension, or of one, to the next."""
        return self._steps() if dim is None else self._steps()[axis_of(dim, len(self._shape))]

    def storage_offset(self) -> int:
        """Elements of the storage before the first one."""
        return self._offset

    def is_contiguous(self, memory_format: Any = None) -> bool:
        """Reports whether the elements lie in row-major order without gaps."""
        steps = self._strides
        if steps is None or 0 in self._shape:
            return True
        return all(s == r for s, r, n in zip(steps, row_major(self._shape), self._shape, strict=True) if n > 1)

    def _steps(self) -> tuple[int, ...]:
        return self._strides if self._strides is not None else row_major(self._shape)

    # -- where it is

    @property
    def is_cuda(self) -> bool:
        """Reports whether it is on a simulated device."""
        return not self.device.is_host

    @property
    def is_cpu(self) -> bool:
        """Reports whether it is in the host's memory."""
        return self.device.is_host

    def get_device(self) -> int:
        """The number of the SIP; -1 for the host."""
        return -1 if self.device.index is None else self.device.index

    @property
    def _sip(self) -> int:
        """The SIP from whose memory the fabric takes it: for a tensor of the host the rank's current one."""
        return runtime.current().device if self.device.index is None else self.device.index

    @property
    def _handle(self) -> int:
        """The Go core's handle. Who asks for it may set an operation of the core going, so later looks check."""
        number, storage = self._number, self._storage
        if storage.lends:
            storage.take_back()
        storage.unsettled = storage.pending = True
        return number

    @property
    def core_handle(self) -> int:
        """The Go core's handle for what is to use the elements. It is 0 of another rank's memory: the rank's own memory
        in the same place stands for it."""
        return self._handle if self._storage.beside is None else 0

    @property
    def memory(self) -> Storage:
        """The run of bytes that the tensor is a view of."""
        return self._storage

    def settle(self) -> None:
        """Blocks this rank until the results of operations on the tensor are in place: in no simulated time."""
        self._storage.settle(self)

    @property
    def _number(self) -> int:
        """The Go core's handle, for a call after which nothing more is going on than before."""
        if self._core is None:
            self._core = self._storage.handle(self.dtype, self._shape, self._strides, self._offset)
        return self._core.number

    def data_ptr(self) -> int:
        """The address of the first element; from now on it stays there."""
        start = self._storage.data_ptr()
        return start + self._offset * self.dtype.itemsize if start else 0

    # -- elements, for operations

    def _settles(self, writes: bool = False) -> bool:
        """Reports whether the elements are known, or can be written, when other ranks have run as far as they can in no
        simulated time.

        For what is to come into the host's memory the host waits in any case, as PyTorch's does.
        """
        if self.device.is_host:
            self._storage.settle(self, writes)
            return True
        return self._storage.settles(self, writes)

    def _read(self) -> np.ndarray:
        """The elements in place, once what is to be in them is there; good until the next operation."""
        storage = self._storage
        if storage.unsettled:
            storage.settle(self)
        return self._array if self._array is not None else self._look(writable=False)

    def _write(self) -> np.ndarray:
        """The elements in place, to be overwritten; they stay where they are from now on."""
        storage = self._storage
        if storage.unsettled:
            storage.settle(self, writes=True)
            storage.take_back()
        return self._array if self._array is not None else self._look(writable=True)

    def _look(self, writable: bool) -> np.ndarray:
        array, stays = self._storage.array(self.dtype, self._shape, self._steps(), self._offset, writable)
        if stays:
            self._array = array
        return array

    # -- elements, for the host

    def numpy(self, *, force: bool = False) -> np.ndarray:
        """The elements as a NumPy array that shares the tensor's memory.

        Raises:
            RuntimeError: the tensor requires a gradient; force: never.
        """
        if not force:
            self._check_detached()
        return self._shown().view()

    def _shown(self) -> np.ndarray:
        """The elements in their place. The program may write there without telling, and see to what else is under way:
        who only looks need not wait for what reads them."""
        storage = self._storage
        if storage.unsettled:
            storage.settle(self)
            storage.take_back()
        return self._array if self._array is not None else self._look(writable=True)

    def _check_detached(self) -> None:
        if self._autograd is not None and self.requires_grad:
            raise RuntimeError("Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead.")

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        self._check_detached()
        return np.array(self._shown(), dtype=dtype, copy=copy)

    def tolist(self) -> Any:
        """The elements as Python numbers, in nested lists."""
        return self._read().tolist()

    def item(self) -> Any:
        """The only element, as a Python number.

        Raises:
            RuntimeError: there is not exactly one.
        """
        array = self._read()
        if array.size != 1:
            raise RuntimeError(f"a Tensor with {array.size} elements cannot be converted to Scalar")
        return array.item()

    def __float__(self) -> float:
        return float(self._real_item(dtypes.float64))

    def __int__(self) -> int:
        return int(self._real_item(dtypes.int64))

    def _real_item(self, kind: dtypes.dtype) -> Any:
        number = self.item()
        check_number(number, kind)
        return number.real

    def __complex__(self) -> complex:
        return complex(self.item())

    def __index__(self) -> int:
        if self.dtype.is_inexact or self.numel() != 1:
            raise TypeError("only integer tensors of a single element can be converted to an index")
        return int(self.item())

    def __bool__(self) -> bool:
        array = self._read()
        if array.size != 1:
            many = "more than one value" if array.size else "no values"
            raise RuntimeError(f"Boolean value of Tensor with {many} is ambiguous")
        return bool(array.item())

    def __contains__(self, value: Any) -> bool:
        if not isinstance(value, (Tensor, *dtypes.NUMBERS)):
            raise RuntimeError(
                f"Tensor.__contains__ only supports Tensor or scalar, but you passed in a {type(value)}."
            )
        return bool((self == value).any())

    def __format__(self, spec: str) -> str:
        return format(self.item(), spec) if not self._shape else format(repr(self), spec)

    def __repr__(self) -> str:
        from torchemu.frontends.numpy._tensor.formatting import formatted

        return formatted(self)

    def __len__(self) -> int:
        if not self._shape:
            raise TypeError("len() of a 0-d tensor")
        return self._shape[0]

    def __iter__(self) -> Iterator[Tensor]:
        if not self._shape:
            raise TypeError("iteration over a 0-d tensor")
        return iter(self.unbind(0))

    __hash__ = object.__hash__

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        from torchemu.frontends.numpy._tensor.from_data import restored

        extra = {k: v for k, v in vars(self).items() if not k.startswith("_") and k not in ("dtype", "device")}
        return restored, (type(self), np.array(self._read()), self.device, self.requires_grad), extra

    def __copy__(self) -> Tensor:
        copy = object.__new__(type(self))
        vars(copy).update(vars(self))
        return copy

    def __deepcopy__(self, memo: dict[int, Any]) -> Tensor:
        from torchemu.frontends.numpy._tensor.from_data import deep_copy

        return deep_copy(self, memo)


def adopted(
    world: runtime.World, array: np.ndarray, kind: dtypes.dtype, where: device, cls: type[Tensor] = Tensor
) -> Tensor:
    """A tensor whose memory is the array's."""
    t = object.__new__(cls)
    t._array, t._shape, t.dtype, t.device = array, array.shape, kind, where
    if array.flags.c_contiguous:
        t._storage = Storage(world, array, array.nbytes)
    else:
        t._storage = Storage(world, array, reach_of(array))
        t._strides = tuple([s // kind.itemsize for s in array.strides])
    if not where.is_host:
        t._storage.piece = memory_use.current().take(t._storage, t._storage.nbytes)
    return t


def all_bytes(storage: Storage) -> Tensor:
    """The bytes of a storage."""
    return aliased_to(storage, dtypes.uint8, UNNAMED, (storage.nbytes,), (1,), 0)


def aliased(
    t: Tensor, shape: Sequence[int], strides: Sequence[int], offset: int, kind: dtypes.dtype | None = None
) -> Tensor:
    """A view of t's storage. The offset is that of the storage; strides and it count elements."""
    v = object.__new__(Tensor)  # as aliased_to: views are many, and calls cost
    v._storage, v.dtype, v.device = t._storage, kind or t.dtype, t.device
    v._shape, v._strides, v._offset = tuple(shape), tuple(strides), offset
    if t.name:
        v.name = t.name
    return v


def aliased_parts(t: Tensor, axis: int, sizes: Sequence[int]) -> list[Tensor]:
    """Views of parts of t, of these sizes along a dimension, one after another."""
    storage, kind, where, strides, offset = t._storage, t.dtype, t.device, t._steps(), t._offset
    base = t if t._base is None else t._base
    before, after, step = t._shape[:axis], t._shape[axis + 1 :], strides[axis]
    shape, last = t._shape, t._shape[axis]
    parts = list(map(object.__new__, [Tensor] * len(sizes)))
    for v, n in zip(parts, sizes, strict=True):  # in one loop: a rank's blocks are as many as ranks, and calls cost
        if n != last:
            shape, last = (*before, n, *after), n
        v._storage, v.dtype, v.device = storage, kind, where
        v._shape, v._strides = shape, strides
        v._offset, v._base = offset, base
        offset += n * step
    if t.name:
        for v in parts:
            v.name = t.name
    return parts


def aliased_to(
    storage: Storage, kind: dtypes.dtype, where: device, shape: Sequence[int], strides: Sequence[int], offset: int
) -> Tensor:
    """A tensor in a storage; strides and offset count elements."""
    v = object.__new__(Tensor)
    v._storage, v.dtype, v.device = storage, kind, where
    v._shape, v._strides, v._offset = tuple(shape), tuple(strides), offset
    return v


def axis_of(dim: int, ndim: int) -> int:
    """The dimension, counted from 0.

    Raises:
        IndexError: there is no such dimension.
    """
    bound = max(ndim, 1)
    if not -bound <= dim < bound:
        raise IndexError(f"Dimension out of range (expected to be in range of [{-bound}, {bound - 1}], but got {dim})")
    return dim % bound


share(Tensor)
