"""Views: other shapes and strides on the same memory. They look at no element."""

# ruff: noqa: A001, A002 (names are PyTorch's)

from __future__ import annotations

import builtins
import math
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from torchemu import dtypes
from torchemu.frontends.numpy._shape import dims, row_major
from torchemu.frontends.numpy._tensor.core import Tensor, aliased, axis_of, method
from torchemu.frontends.numpy._tensor.dispatch import Op, _op, _op_view, never, no_flops

__all__ = [
    "as_strided",
    "broadcast_shapes",
    "channels_last",
    "channels_last_3d",
    "clone",
    "contiguous_format",
    "detach",
    "flatten",
    "permute",
    "preserve_format",
    "reshape",
    "squeeze",
    "strided",
    "t",
    "transpose",
    "unsqueeze",
]


class Format:
    """torch.strided, torch.preserve_format and their kin: how elements lie in memory."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __repr__(self) -> str:
        return f"torch.{self._name}"


strided, preserve_format, contiguous_format = map(Format, ("strided", "preserve_format", "contiguous_format"))
channels_last, channels_last_3d = map(Format, ("channels_last", "channels_last_3d"))


def view_op(name: str) -> Op:
    """An operation that makes views."""
    return Op(name, never, no_flops)


VIEW, AS_STRIDED, PERMUTE, EXPAND, SQUEEZE, VIEW_DTYPE = map(
    view_op, ("view", "as_strided", "permute", "expand", "squeeze", "view_dtype")
)
CLONE = Op("clone", lambda x, order: np.array(x, order=order), no_flops)

# -- shape


@method
def view(input: Tensor, *shape: Any, dtype: Any = None) -> Tensor:
    """The same elements in another shape, of which one size may be -1; or, with a dtype, the same bytes.

    Raises:
        RuntimeError: the numbers of elements differ, or no strides give these elements in that shape.
    """
    given = dtype if dtype is not None else shape[0] if len(shape) == 1 else None
    if isinstance(given, dtypes.dtype):
        return _of_other_dtype(input, given)
    full = resolved(dims(shape), input.numel())
    strides = _strides_of_view(input, full)
    if strides is None:
        raise RuntimeError(
            f"view size {list(full)} is not compatible with input tensor's size {list(input._shape)} and stride "
            f"{list(input._steps())} (at least one dimension spans across two contiguous subspaces). "
            "Use .reshape(...) instead."
        )
    return _op_view(VIEW, input, full, strides, input._offset, full)


def resolved(shape: tuple[int, ...], numel: int) -> tuple[int, ...]:
    """The shape, of so many elements, with its -1 worked out.

    Raises:
        RuntimeError: it cannot be.
    """
    if math.prod(shape) == numel and min(shape, default=0) >= 0:
        return shape
    if shape.count(-1) > 1:
        raise RuntimeError(f"only one dimension can be inferred: shape '{list(shape)}'")
    negative = [n for n in shape if n < -1]
    if negative:
        raise RuntimeError(f"invalid shape dimension {negative[0]} in '{list(shape)}'")
    known = math.prod(n for n in shape if n != -1)
    if -1 in shape:
        if known == 0:
            if numel == 0:
                raise RuntimeError(
                    f"cannot reshape tensor of 0 elements into shape {list(shape)} because the unspecified dimension "
                    "size -1 can be any value and is ambiguous"
                )
        elif numel % known == 0:
            return tuple([numel // known if n == -1 else n for n in shape])
    raise RuntimeError(f"shape '{list(shape)}' is invalid for input of size {numel}")


def _strides_of_view(t: Tensor, shape: tuple[int, ...]) -> tuple[int, ...] | None:
    """Strides that give t's elements in another shape; None when there are none."""
    if t._strides is None or 0 in shape or t.is_contiguous():
        return row_major(shape)
    if shape == t._shape:
        return t._strides
    strides: list[int] = []
    sizes = list(reversed(shape))
    for n, step in reversed(_runs(t)):
        covered = 1
        while sizes and covered < n:
            strides.append(step * covered)
            covered *= sizes.pop(0)
        if covered != n:
            return None
    strides += [strides[-1] if strides else 1] * len(sizes)  # sizes of 1
    return tuple(reversed(strides))


def _runs(t: Tensor) -> list[tuple[int, int]]:
    """The dimensions, without those of size 1, joined where one goes on in steps of the next: (size, stride)."""
    runs: list[tuple[int, int]] = []
    for n, s in zip(t._shape, t._steps(), strict=True):
        if n == 1:
            continue
        if runs and runs[-1][1] == n * s:
            runs[-1] = (runs[-1][0] * n, s)
        else:
            runs.append((n, s))
    return runs


def _of_other_dtype(t: Tensor, kind: dtypes.dtype) -> Tensor:
    size, other = t.dtype.itemsize, kind.itemsize
    shape, strides = list(t._shape), list(t._steps())
    if size == other:
        return _op_view(VIEW_DTYPE, t, shape, strides, t._offset, kind, kind=kind)
    about = f"self.view(dtype) from {t.dtype!r} to {kind!r}"
    if not shape or strides[-1] != 1:
        raise RuntimeError(f"{about}: the last dimension must be there and have stride 1 where the sizes differ")
    bigger = max(other // size, 1)  # elements that become one
    if shape[-1] % bigger or t._offset % bigger or any(s % bigger for s in strides[:-1]):
        raise RuntimeError(
            f"{about}: the last size, {shape[-1]}, the offset, {t._offset}, and the strides must be multiples of "
            f"{bigger}"
        )
    shape[-1] = shape[-1] * size // other
    steps = [s * size // other for s in strides[:-1]]
    return _op_view(VIEW_DTYPE, t, shape, [*steps, 1], t._offset * size // other, kind, kind=kind)


@method
def view_as(input: Tensor, other: Tensor) -> Tensor:
    """view() in other's shape."""
    return view(input, *other._shape)


@method
def reshape(input: Tensor, *shape: Any) -> Tensor:
    """view() where there is one, of a copy otherwise."""
    full = resolved(dims(shape), input.numel())
    strides = _strides_of_view(input, full)
    if strides is None:
        input, strides = clone(input, memory_format=contiguous_format), row_major(full)
    return _op_view(VIEW, input, full, strides, input._offset, full)


@method
def reshape_as(input: Tensor, other: Tensor) -> Tensor:
    """reshape() to other's shape."""
    return reshape(input, *other._shape)


@method
def flatten(input: Tensor, start_dim: int = 0, end_dim: int = -1) -> Tensor:
    """With the dimensions from start_dim to end_dim made one.

    Raises:
        IndexError: no such dimension.
        RuntimeError: start_dim comes after end_dim.
    """
    shape = input._shape
    first, last = axis_of(start_dim, len(shape)), axis_of(end_dim, len(shape))
    if first > last:
        raise RuntimeError("flatten() has invalid args: start_dim cannot come after end_dim")
    return reshape(input, *shape[:first], math.prod(shape[first : last + 1]), *shape[last + 1 :])


@method
def squeeze(input: Tensor, dim: int | Sequence[int] | None = None) -> Tensor:
    """Without the dimensions of size 1, or without those given, where their size is 1."""
    shape, steps = input._shape, input._steps()
    if dim is None:
        gone = set(range(len(shape)))
    else:
        gone = {axis_of(d, len(shape)) for d in (dim if isinstance(dim, Sequence) else [dim])}
    kept = [i for i, n in enumerate(shape) if n != 1 or i not in gone]
    return _op_view(SQUEEZE, input, [shape[i] for i in kept], [steps[i] for i in kept], input._offset, dim)


@method
def unsqueeze(input: Tensor, dim: int) -> Tensor:
    """With a dimension of size 1 more."""
    shape, steps = list(input._shape), list(input._steps())
    axis = axis_of(dim, len(shape) + 1)
    step = shape[axis] * steps[axis] if axis < len(shape) else 1
    shape.insert(axis, 1)
    steps.insert(axis, step)
    return _op_view(VIEW, input, shape, steps, input._offset, tuple(shape))


@method
def expand(input: Tensor, *sizes: Any) -> Tensor:
    """With dimensions of size 1, or new ones in front, repeated without a copy; -1 leaves a size as it is.

    Raises:
        RuntimeError: another dimension's size would change.
    """
    target, shape = list(dims(sizes)), input._shape
    new = len(target) - len(shape)
    about = f"Target sizes: {target}.  Tensor sizes: {list(shape)}"
    if new < 0:
        raise RuntimeError(
            f"expand: the number of sizes provided ({len(target)}) must be greater or equal to the number of "
            f"dimensions in the tensor ({len(shape)}). {about}"
        )
    steps = [0] * new + list(input._steps())
    for i, n in enumerate(target):
        have = shape[i - new] if i >= new else 1
        if n == -1 and i >= new:
            target[i] = have
        elif n != have:
            if have != 1 or n < 0:
                raise RuntimeError(
                    f"The expanded size of the tensor ({n}) must match the existing size ({have}) at non-singleton "
                    f"dimension {i}.  {about}"
                )
            steps[i] = 0
    return _op_view(EXPAND, input, target, steps, input._offset, tuple(target))


def broadcast_shapes(*shapes: Any) -> tuple[int, ...]:
    """The shape to which all broadcast."""
    from torchemu.frontends.numpy._shape import Size

    try:
        return Size(np.broadcast_shapes(*[(s,) if isinstance(s, int) else tuple(s) for s in shapes]))
    except ValueError:
        raise RuntimeError(f"Shape mismatch: objects cannot be broadcast to a single shape: {shapes}") from None


# -- order of the dimensions


@method
def permute(input: Tensor, *dims_: Any, dims: Sequence[int] | None = None) -> Tensor:
    """With the dimensions in another order.

    Raises:
        RuntimeError: not each dimension exactly once.
    """
    order = dims if dims is not None else dims_[0] if len(dims_) == 1 and isinstance(dims_[0], Sequence) else dims_
    shape, steps = input._shape, input._steps()
    if len(order) != len(shape):
        raise RuntimeError(
            "permute: number of dimensions in the tensor input does not match the length of the desired ordering of "
            f"dimensions i.e. input.dim() = {len(shape)} is not equal to len(dims) = {len(order)}"
        )
    axes = [axis_of(d, len(shape)) for d in order]
    if len(set(axes)) != len(axes):
        raise RuntimeError(f"permute(): duplicate dims are not allowed: {tuple(order)}")
    return _op_view(PERMUTE, input, [shape[i] for i in axes], [steps[i] for i in axes], input._offset, tuple(axes))


@method
def transpose(input: Tensor, dim0: int, dim1: int) -> Tensor:
    """With two dimensions exchanged."""
    n = len(input._shape)
    order, a, b = list(range(n)), axis_of(dim0, n), axis_of(dim1, n)
    if n:
        order[a], order[b] = b, a
    return permute(input, order)


@method
def t(input: Tensor) -> Tensor:
    """A matrix transposed.

    Raises:
        RuntimeError: more than two dimensions.
    """
    if len(input._shape) > 2:
        raise RuntimeError(f"t() expects a tensor with <= 2 dimensions, but self is {len(input._shape)}D")
    return transpose(input, 0, 1) if len(input._shape) == 2 else permute(input, list(range(len(input._shape))))


def last_two_swapped(input: Tensor) -> Tensor:
    """Tensor.mT: each matrix transposed."""
    if len(input._shape) < 2:
        raise RuntimeError(
            f"tensor.mT is only supported on matrices or batches of matrices. Got {len(input._shape)}-D tensor."
        )
    return transpose(input, -2, -1)


def reversed_dimensions(input: Tensor) -> Tensor:
    """Tensor.T: the dimensions in reverse order."""
    return permute(input, list(range(len(input._shape) - 1, -1, -1)))


# -- anything


@method
def as_strided(input: Tensor, size: Any, stride: Any, storage_offset: int | None = None) -> Tensor:
    """Any shape and strides on the tensor's storage.

    Raises:
        RuntimeError: they reach beyond it.
    """
    shape, steps = tuple(size), tuple(stride)
    offset = input._offset if storage_offset is None else storage_offset
    if len(shape) != len(steps) or builtins.any(n < 0 for n in (*shape, *steps, offset)):
        raise RuntimeError(
            f"as_strided: size {list(shape)}, stride {list(steps)} and storage offset {offset} must not be negative, "
            "and there must be a stride for each size"
        )
    reach = offset + 1 + sum((n - 1) * s for n, s in zip(shape, steps, strict=True)) if 0 not in shape else 0
    if reach * input.dtype.itemsize > input._storage.nbytes:
        raise RuntimeError(
            f"setStorage: sizes {list(shape)}, strides {list(steps)}, storage offset {offset}, and itemsize "
            f"{input.dtype.itemsize} requiring a storage size of {reach * input.dtype.itemsize} are out of bounds "
            f"for storage of size {input._storage.nbytes}"
        )
    return strided_view(input, shape, steps, offset)


def strided_view(input: Tensor, shape: Sequence[int], steps: Sequence[int], offset: int) -> Tensor:
    """as_strided() of what is known to be there."""
    geometry = (input._shape, input._steps(), input._offset)
    return _op_view(AS_STRIDED, input, shape, steps, offset, (tuple(shape), tuple(steps), offset), geometry)


# -- the same, and copies


@method
def detach(input: Tensor) -> Tensor:
    """The same elements as a tensor that gradients do not flow through."""
    t = aliased(input, input._shape, input._steps(), input._offset)
    if input._versions is not None:
        t._versions = input._versions
    return t


@method
def clone(input: Tensor, *, memory_format: Any = None) -> Tensor:
    """A copy with memory of its own; its elements are in the same order in memory, if they have no gaps."""
    return _op(CLONE, (input,), "C" if memory_format is contiguous_format else order_of(input))


def order_of(t: Tensor) -> Literal["C", "K"]:
    """Returns NumPy's name for the order in memory that a copy has: the tensor's own if it has no gaps."""
    steps = t._strides
    if steps is None:
        return "C"
    dense = row_major([n for _, n in sorted(zip(steps, t._shape, strict=True), reverse=True)])
    return "K" if tuple(sorted(steps, reverse=True)) == dense else "C"


@method
def contiguous(input: Tensor, memory_format: Any = None) -> Tensor:
    """The tensor itself if its elements lie in row-major order, a copy of which that is true otherwise."""
    return input if input.is_contiguous() else clone(input, memory_format=contiguous_format)
