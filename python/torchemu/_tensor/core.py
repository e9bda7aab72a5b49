"""Tensor: a view of memory that the Go core owns."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from torchemu import _handles, _runtime, dtypes
from torchemu._binding import go
from torchemu._placement import WHOLE, DPPolicy
from torchemu._shape import Size, as_text, dims, resolved, row_major, selected

HOST_READS = (
    "__array__",
    "__bool__",
    "__contains__",
    "__eq__",
    "__float__",
    "__format__",
    "__getitem__",
    "__int__",
    "__iter__",
    "__ne__",
    "__reduce__",
    "__repr__",
    "clone",
    "item",
    "numpy",
    "tolist",
)
"""The methods by which a host program sees a tensor's elements. Each first waits for the work pending on the tensor;
nothing else does, except ``copy_``, which waits for its source."""


def _waits(method: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(method)
    def read(self: Tensor, *args: Any, **kwargs: Any) -> Any:
        self.wait()
        return method(self, *args, **kwargs)

    return read


def _host_reads(cls: type[Tensor]) -> type[Tensor]:
    """Makes the methods of HOST_READS wait."""
    for name in HOST_READS:
        setattr(cls, name, _waits(getattr(cls, name)))
    return cls


class _Memory:
    """Lets NumPy look at a tensor's elements where they are, and keeps the tensor alive as long as NumPy looks."""

    def __init__(self, tensor: Tensor, address: int, writable: bool) -> None:
        size = tensor.dtype.itemsize
        kind = tensor.dtype.numpy
        self.tensor = tensor
        self.__array_interface__ = {
            "version": 3,
            "shape": tensor.shape,
            "typestr": kind.str if kind.isbuiltin == 1 else f"<u{size}",  # ml_dtypes' types have no code of their own
            "data": (address, not writable),
            "strides": tuple(s * size for s in tensor.stride()),
        }


@_host_reads
class Tensor:
    """A tensor on one simulated device. Its memory belongs to the Go core.

    Attributes:
        dtype: the element type.
        shape: the dimensions.
        device: the index of the SIP it is on.
        dp: the DPPolicy it was made with; how it is sharded within the SIP.
        name: what the program called it, or "".
    """

    __slots__ = ("__weakref__", "_external", "_handle", "_strides", "device", "dp", "dtype", "name", "shape", "world")

    def __init__(
        self,
        world: _runtime.World,
        handle: int,
        dtype: dtypes.dtype,
        shape: Sequence[int],
        strides: Sequence[int] | None = None,
        *,
        device: int = 0,
        dp: DPPolicy = WHOLE,
        name: str = "",
        external: object = None,
    ) -> None:
        """Wraps a handle of the Go core. Programs call torch.zeros and its kin instead."""
        self.world, self._handle, self.dtype, self.shape = world, handle, dtype, Size(shape)
        self._strides = tuple(strides) if strides is not None else row_major(self.shape)
        self.device, self.dp, self.name = device, dp, name
        self._external = external  # what owns the memory, when the Go core does not
        _handles.hold(self, world, handle, external)

    # -- waiting

    def wait(self) -> None:
        """Blocks this rank until the work pending on the tensor has ended."""
        _runtime.current().wait(self._handle)

    # -- shape

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return len(self.shape)

    @property
    def nbytes(self) -> int:
        """The number of bytes of the elements."""
        return self.numel() * self.dtype.itemsize

    def dim(self) -> int:
        """The number of dimensions."""
        return len(self.shape)

    def numel(self) -> int:
        """The number of elements."""
        return math.prod(self.shape)

    def element_size(self) -> int:
        """Bytes an element."""
        return self.dtype.itemsize

    def size(self, dim: int | None = None) -> Size | int:
        """The shape, or one dimension of it."""
        return self.shape if dim is None else self.shape[dim]

    def stride(self) -> tuple[int, ...]:
        """Elements from one index of each dimension to the next."""
        return self._strides

    def is_contiguous(self) -> bool:
        """Whether the elements lie in row-major order without gaps."""
        return self.numel() == 0 or all(
            s == r for s, r, n in zip(self._strides, row_major(self.shape), self.shape, strict=True) if n > 1
        )

    def view(self, *shape: int | Sequence[int]) -> Tensor:
        """The same memory in another shape; one dimension may be -1.

        Raises:
            RuntimeError: the tensor is not contiguous.
            ValueError: the numbers of elements differ.
        """
        if not self.is_contiguous():
            raise RuntimeError("view needs a contiguous tensor; this one's elements do not lie in row-major order")
        full = resolved(dims(shape), self.numel())
        return self._view(full, row_major(full), 0)

    def reshape(self, *shape: int | Sequence[int]) -> Tensor:
        """view() of a contiguous tensor, of a copy otherwise."""
        return (self if self.is_contiguous() else self.clone()).view(*shape)

    def _view(self, shape: Sequence[int], strides: Sequence[int], offset: int) -> Tensor:
        handle = go.ViewTensor(self._handle, as_text(shape), as_text(strides), offset)
        return Tensor(
            self.world, handle, self.dtype, shape, strides, device=self.device, name=self.name, external=self._external
        )

    # -- elements, for reading

    def _seen(self, writable: bool = False) -> np.ndarray:
        """The elements as NumPy sees them in place. Without writable only for use before the next operation."""
        address = go.ExportAddress(self._handle) if writable else go.ReadAddress(self._handle)
        return np.asarray(_Memory(self, address, writable)).view(self.dtype.numpy)

    def numpy(self) -> np.ndarray:
        """The elements as a NumPy array that shares the tensor's memory."""
        return self._seen(writable=True)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.array(self._seen(writable=True), dtype=dtype, copy=copy)

    def tolist(self) -> Any:
        """The elements as Python numbers, in nested lists."""
        return self._seen().tolist()

    def item(self) -> Any:
        """The only element, as a Python number.

        Raises:
            RuntimeError: there is not exactly one.
        """
        if self.numel() != 1:
            raise RuntimeError(f"a Tensor with {self.numel()} elements cannot be converted to Scalar")
        return self._seen().item()

    def __float__(self) -> float:
        return float(self._seen().item())

    def __int__(self) -> int:
        return int(self._seen().item())

    def __bool__(self) -> bool:
        if self.numel() != 1:
            raise RuntimeError("Boolean value of Tensor with more than one value is ambiguous")
        return bool(self._seen().item())

    def __format__(self, spec: str) -> str:
        return format(self._seen().item(), spec) if self.ndim == 0 else format(repr(self), spec)

    def __repr__(self) -> str:
        body = np.array2string(self._seen(), separator=", ", prefix="tensor(")
        return f"tensor({body}, device='ahbm:{self.device}', dtype={self.dtype!r})"

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of a 0-d tensor")
        return self.shape[0]

    def __iter__(self) -> Iterator[Tensor]:
        return (self[i] for i in range(len(self)))

    # An operand that is a tensor may have to be waited for, in which time other ranks run: it comes before _seen.

    def __contains__(self, value: Any) -> bool:
        value = operand(value)
        return bool((self._seen() == value).any())

    def __eq__(self, other: Any) -> Tensor:  # type: ignore[override]
        other = operand(other)
        return self._new(self._seen() == other)

    def __ne__(self, other: Any) -> Tensor:  # type: ignore[override]
        other = operand(other)
        return self._new(self._seen() != other)

    __hash__ = object.__hash__

    def __reduce__(self) -> tuple[Any, ...]:
        """For pickle and copy: a copy with memory of its own."""
        from torchemu._tensor.creation import restored

        return restored, (np.array(self._seen()), self.device, self.dp, self.name)

    def _new(self, array: Any) -> Tensor:
        """A new tensor of these elements, on the same device."""
        array = np.asarray(array)
        t = allocated(self.world, dtypes.of_numpy(array), array.shape, self.device)
        t._seen(writable=True)[...] = array
        return t

    def clone(self) -> Tensor:
        """A copy with memory of its own."""
        return self._new(self._seen())

    def __getitem__(self, index: Any) -> Tensor:
        """A view for indices and slices; a copy for lists and masks, as NumPy and PyTorch have it."""
        index = _index(index)
        return self._part(index) if _is_basic(index) else self._new(self._seen()[index])

    def _part(self, index: Any) -> Tensor:
        """The view that integers, slices and the like select. It looks at no element, and so it need not wait."""
        keys = index if isinstance(index, tuple) else (index,)
        return self._view(*selected(keys, self.shape, self._strides))

    # -- elements, for writing

    def copy_(self, src: Tensor, non_blocking: bool = False) -> Tensor:
        """Replaces the elements by src's, converted and broadcast; waits for the work pending on src only.

        Raises:
            TypeError: src is not a tensor.
            RuntimeError: src is of another World.
            ValueError: the shapes do not fit.
        """
        if not isinstance(src, Tensor):
            raise TypeError(f"copy_(): argument 'other' must be Tensor, not {type(src).__name__}")
        src.wait()
        go.CopyTensor(_runtime.current().rank, self._handle, src._handle)
        return self

    def fill_(self, value: Any) -> Tensor:
        """Makes every element the value, converted as copy_ does."""
        return self.copy_(self._new(value))

    def zero_(self) -> Tensor:
        """Makes every element zero."""
        return self.fill_(0)

    def __setitem__(self, index: Any, value: Any) -> None:
        """copy_ to the part that indices and slices select; lists and masks first wait for the tensor itself."""
        index = _index(index)
        if _is_basic(index):
            self._part(index).copy_(value if isinstance(value, Tensor) else self._new(value))
            return
        value = operand(value)
        with np.errstate(all="ignore"):
            self.numpy()[index] = value


def _is_basic(index: Any) -> bool:
    """Whether NumPy answers the index with a view."""
    parts = index if isinstance(index, tuple) else (index,)
    return all(p is None or p is Ellipsis or isinstance(p, int | np.integer | slice) for p in parts) and not any(
        isinstance(p, bool) for p in parts
    )


def _index(index: Any) -> Any:
    if isinstance(index, tuple):
        return tuple(operand(p) for p in index)
    return operand(index)


def operand(value: Any) -> Any:
    """What NumPy can calculate with."""
    return value.numpy() if isinstance(value, Tensor) else value


_ADDRESSABLE = 1 << 46
"""Bytes that no process can have; the core's allocator has the same bound."""


def allocated(
    world: _runtime.World, kind: dtypes.dtype, shape: Sequence[int], device: int, dp: DPPolicy = WHOLE, name: str = ""
) -> Tensor:
    if any(n < 0 for n in shape):
        raise ValueError(f"a tensor cannot have negative dimensions: {list(shape)}")
    nbytes = math.prod(max(n, 1) for n in shape) * kind.itemsize
    if nbytes > _ADDRESSABLE:
        raise MemoryError(f"a {kind.name} tensor of shape {list(shape)} takes {nbytes} bytes: no machine has so many")
    handle = go.NewTensor(world.handle, kind.name, as_text(shape))
    return Tensor(world, handle, kind, shape, device=device, dp=dp, name=name)
