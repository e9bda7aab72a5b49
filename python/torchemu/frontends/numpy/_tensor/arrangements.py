"""Other arrangements of elements: rotated, combined, put into copies; windows; and copies of what are views "
"elsewhere."""

# ruff: noqa: A001, A002 (names are PyTorch's)

from __future__ import annotations

import itertools
import math
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from torchemu import dtypes
from torchemu.frontends.numpy._settings import current
from torchemu.frontends.numpy._tensor.copying import set_data
from torchemu.frontends.numpy._tensor.core import Tensor, aliased_to, axis_of, method
from torchemu.frontends.numpy._tensor.creation import arange
from torchemu.frontends.numpy._tensor.from_data import as_tensor, from_numpy
from torchemu.frontends.numpy._tensor.gathering import diag, flip
from torchemu.frontends.numpy._tensor.memory import UntypedStorage
from torchemu.frontends.numpy._tensor.parts import diagonal, narrow, select, tensor_split

__all__ = [
    "as_strided_scatter",
    "bartlett_window",
    "blackman_window",
    "combinations",
    "diagflat",
    "diagonal_scatter",
    "dsplit",
    "hamming_window",
    "hann_window",
    "kaiser_window",
    "narrow_copy",
    "range",
    "rot90",
    "select_scatter",
    "slice_scatter",
    "unravel_index",
    "vander",
]


@method
def diagflat(input: Tensor, offset: int = 0) -> Tensor:
    """All elements on a diagonal of a matrix of zeros."""
    return diag(input.reshape(-1), offset)


@method
def rot90(input: Tensor, k: int = 1, dims: Sequence[int] = (0, 1)) -> Tensor:
    """Turned k times by 90° from the first of two dimensions towards the second.

    Raises:
        RuntimeError: not two different dimensions.
    """
    if len(dims) != 2:
        raise RuntimeError(f"expected total rotation dims == 2, but got dims = {len(dims)}")
    if input.dim() < 2:
        raise RuntimeError(f"expected total dims >= 2, but got total dims = {input.dim()}")
    a, b = (axis_of(d, input.dim()) for d in dims)
    if a == b:
        raise RuntimeError(f"expected rotation dims to be different, but got dim0 = {dims[0]} and dim1 = {dims[1]}")
    turns = k % 4
    if turns == 0:
        return input.clone()
    if turns == 2:
        return flip(input, a, b)
    return flip(input, b).transpose(a, b) if turns == 1 else flip(input, a).transpose(a, b)


def combinations(input: Tensor, r: int = 2, with_replacement: bool = False) -> Tensor:
    """All choices of r elements of a vector, in order, as rows.

    Raises:
        RuntimeError: no vector, or r is negative.
    """
    if input.dim() != 1:
        raise RuntimeError(f"Expect a 1D vector, but got shape {list(input._shape)}")
    if r < 0:
        raise RuntimeError(f"Expect a non-negative number, but got {r}")
    if not r:
        return input.new_empty(0)
    choose = itertools.combinations_with_replacement if with_replacement else itertools.combinations
    rows = np.array(list(choose(np.arange(input._shape[0]), r)), np.int64).reshape(-1, r)
    return input[from_numpy(rows).to(input.device)]


def vander(x: Tensor, N: int | None = None, increasing: bool = False) -> Tensor:  # noqa: N803
    """The powers of each element of a vector, from the N-1-th to the 0-th, or the other way."""
    if x.dim() != 1:
        raise RuntimeError("x must be a one-dimensional tensor.")
    n = x._shape[0] if N is None else N
    if n < 0:
        raise RuntimeError("N must be non-negative.")
    powers = arange(n, device=x.device)
    return x.unsqueeze(1).pow(powers if increasing else powers.flip(0))


def range(start: Any, end: Any = None, step: Any = 1, **options: Any) -> Tensor:
    """From start up to and with end, of the default dtype: arange is what replaces it."""
    warnings.warn(
        "torch.range is deprecated and will be removed in a future release because its behavior is inconsistent with "
        "Python's range builtin. Instead, use torch.arange, which produces values in [start, end).",
        stacklevel=2,
    )
    first, last = (0, start) if end is None else (start, end)
    if not step:
        raise RuntimeError("step must be nonzero")
    if (last - first) * step < 0:
        raise RuntimeError("upper bound and lower bound inconsistent with step sign")
    count = math.floor((last - first) / step + 1e-9) + 1
    kind = options.pop("dtype", None) or current().dtype
    return (arange(count, dtype=kind, **options) * step + first).to(kind)


@method
def dsplit(input: Tensor, indices_or_sections: Any) -> tuple[Tensor, ...]:
    """tensor_split along the third dimension."""
    if input.dim() < 3:
        raise RuntimeError(
            f"torch.dsplit requires a tensor with at least 3 dimension, but got a tensor with {input.dim()} dimensions!"
        )
    return tensor_split(input, indices_or_sections, 2)


@method
def narrow_copy(input: Tensor, dim: int, start: int, length: int) -> Tensor:
    """narrow, copied."""
    return narrow(input, dim, start, length).clone()


def unravel_index(indices: Tensor, shape: Any) -> tuple[Tensor, ...]:
    """The coordinates of elements that are numbered row by row.

    Raises:
        TypeError: no integers. ValueError: a size is negative.
    """
    if indices.dtype.is_inexact or indices.dtype is dtypes.bool_:
        raise TypeError(f"expected 'indices' to be integer dtype, but got {indices.dtype}")
    sizes = [shape] if isinstance(shape, int) else [int(n) for n in shape]
    if any(n < 0 for n in sizes):
        raise ValueError(f"'shape' cannot have negative values, but got {tuple(sizes)}")
    found = []
    for n in reversed(sizes):
        found.append(indices % n)
        indices = indices // n
    return tuple(reversed(found))


# -- put into copies


def _into_copy(input: Tensor, part: Callable[[Tensor], Tensor], src: Tensor, check: bool = True) -> Tensor:
    copy = input.clone()
    place = part(copy)
    if check and place._shape != src._shape:
        raise RuntimeError(
            f"expected src to have a size equal to the slice of self. src size = {list(src._shape)}, slice size = "
            f"{list(place._shape)}"
        )
    place.copy_(src)
    return copy


@method
def select_scatter(input: Tensor, src: Tensor, dim: int, index: int) -> Tensor:
    """A copy with src at an index of a dimension."""
    return _into_copy(input, lambda t: select(t, dim, index), src)


@method
def slice_scatter(
    input: Tensor, src: Tensor, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1
) -> Tensor:
    """A copy with src in a slice of a dimension."""
    axis = axis_of(dim, input.dim())
    return _into_copy(input, lambda t: t[(slice(None),) * axis + (slice(start, end, step),)], src)


@method
def diagonal_scatter(input: Tensor, src: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
    """A copy with src on a diagonal."""
    return _into_copy(input, lambda t: diagonal(t, offset, dim1, dim2), src)


@method
def as_strided_scatter(input: Tensor, src: Tensor, size: Any, stride: Any, storage_offset: int | None = None) -> Tensor:
    """A copy with src in the elements that strides reach."""
    return _into_copy(input, lambda t: t.as_strided(size, stride, storage_offset or 0), src, check=False)


# -- windows


def _window(name: str, values: Callable[..., Any], text: str) -> Callable[..., Tensor]:
    """A function that makes the window of a formula of n places and the number of intervals."""

    def call(window_length: int, periodic: bool = True, *args: float, **options: Any) -> Tensor:
        if window_length < 0:
            raise RuntimeError(f"{name} requires non-negative window_length, got window_length={window_length}")
        numbers = {key: options.pop(key) for key in ("alpha", "beta") if key in options}
        kind = options.pop("dtype", None) or current().dtype
        at = np.arange(window_length, dtype=np.float64)
        intervals = max(window_length if periodic else window_length - 1, 1)
        array = values(at, intervals, *args, **numbers) if window_length > 1 else np.ones(window_length)
        gradient = options.pop("requires_grad", False)
        made = as_tensor(array, dtype=kind, device=options.pop("device", None))
        return made.requires_grad_() if gradient else made

    call.__name__ = call.__qualname__ = name
    call.__doc__ = f"{text}, of window_length elements; periodic: without the last one of one more."
    return call


def _cosines(at: Any, n: int, *shares: float) -> Any:
    return sum((-1) ** k * a * np.cos(2 * np.pi * k * at / n) for k, a in enumerate(shares))


hann_window = _window("hann_window", lambda at, n: _cosines(at, n, 0.5, 0.5), "Hann's window")
hamming_window = _window(
    "hamming_window", lambda at, n, alpha=0.54, beta=0.46: _cosines(at, n, alpha, beta), "Hamming's window"
)
blackman_window = _window("blackman_window", lambda at, n: _cosines(at, n, 0.42, 0.5, 0.08), "Blackman's window")
bartlett_window = _window("bartlett_window", lambda at, n: 1 - np.abs(2 * at / n - 1), "Bartlett's window")
kaiser_window = _window(
    "kaiser_window",
    lambda at, n, beta=12.0: np.i0(beta * np.sqrt(np.maximum(1 - (2 * at / n - 1) ** 2, 0))) / np.i0(beta),
    "Kaiser's window",
)


# -- methods of what is in place


@method
def set_(self: Tensor, source: Any = None, storage_offset: int = 0, size: Any = None, stride: Any = None) -> Tensor:
    """Gives the tensor other memory: that of a tensor, of a storage from an element on, or none.

    Raises:
        RuntimeError: the tensor is of another dtype, or more is asked for than the storage has.
    """
    if source is None:
        set_data(self, self.new_empty(0))
    elif isinstance(source, Tensor):
        if source.dtype is not self.dtype:
            raise RuntimeError(
                f"Could not set tensor of type {source.dtype.title} to a tensor of type {self.dtype.title}"
            )
        set_data(self, source if size is None else source.as_strided(size, stride or _steps(size), storage_offset))
    elif isinstance(source, UntypedStorage):
        whole = source._storage.nbytes // self.dtype.itemsize
        flat = aliased_to(source._storage, self.dtype, source.device, (whole,), (1,), 0)
        shape = (whole,) if size is None else tuple(size)
        set_data(self, flat.as_strided(shape, stride or _steps(shape), storage_offset))
    else:
        raise TypeError(f"set_(): argument 'source' must be Tensor or Storage, not {type(source).__name__}")
    return self


def _steps(shape: Any) -> tuple[int, ...]:
    return tuple(math.prod(shape[at + 1 :]) for at in np.arange(len(shape)))


@method
def resize_as_(self: Tensor, the_template: Tensor, *, memory_format: Any = None) -> Tensor:
    """resize_ to the shape of another tensor."""
    return self.resize_(the_template._shape)


@method
def sum_to_size(self: Tensor, *size: Any) -> Tensor:
    """Summed over the dimensions along which a tensor of this size would be expanded to the tensor's.

    Raises:
        RuntimeError: it would not.
    """
    shape = tuple(size[0]) if len(size) == 1 and not isinstance(size[0], int) else size
    lead = self.dim() - len(shape)
    if lead < 0 or any(n not in (1, m) for n, m in zip(shape, self._shape[lead:], strict=True)):
        raise RuntimeError(f"size {{{list(shape)}}} is not expandable to size {{{list(self._shape)}}}.")
    over = [
        *np.arange(lead),
        *[lead + i for i, (n, m) in enumerate(zip(shape, self._shape[lead:], strict=True)) if n != m],
    ]
    return (self.sum([int(d) for d in over], keepdim=True) if over else self).reshape(shape)


@method
def put_(self: Tensor, index: Tensor, source: Tensor, accumulate: bool = False) -> Tensor:
    """Puts elements where the indices of all elements in a row are; accumulate: adds them.

    Raises:
        RuntimeError: not int64. IndexError: not as many elements as indices, or none there.
    """
    if index.dtype is not dtypes.int64:
        raise RuntimeError(f"put_(): Expected a long tensor for index, but got {index.dtype.title}")
    if index.numel() != source.numel():
        raise IndexError(
            "put_(): Expected source and index to have the same number of elements, but got source.numel() = "
            f"{source.numel()}, index.numel() = {index.numel()}"
        )
    flat = self.reshape(-1).index_put((index.reshape(-1),), source.reshape(-1), accumulate)
    return self.copy_(flat.reshape(self._shape))


@method
def put(self: Tensor, index: Tensor, source: Tensor, accumulate: bool = False) -> Tensor:
    """put_ into a copy."""
    return put_(self.clone(), index, source, accumulate)


@method
def new(self: Tensor, *args: Any, device: Any = None) -> Tensor:
    """A tensor of the same dtype: uninitialized of a size, or of numbers."""
    if len(args) == 1 and isinstance(args[0], list | tuple) and not isinstance(args[0], type(self.shape)):
        return self.new_tensor(args[0])
    if len(args) == 1 and isinstance(args[0], Tensor):
        return args[0].detach().to(self.dtype)
    return self.new_empty(*args) if args else self.new_empty(0)


@method
def apply_(self: Tensor, callable: Callable[[Any], Any]) -> Tensor:
    """Replaces each element of a tensor of the host by what a function of numbers makes of it.

    Raises:
        TypeError: a tensor of a device.
    """
    if not self.device.is_host:
        raise TypeError("apply_ is only implemented on CPU tensors")
    values = [callable(number) for number in self.reshape(-1).tolist()]
    return self.copy_(as_tensor(np.array(values).reshape(self._shape)).to(self.dtype))
