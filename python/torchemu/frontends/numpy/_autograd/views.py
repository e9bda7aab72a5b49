"""Views and gradients: what a write into a view does to the tensor that it is a view of, and to other views."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from torchemu.frontends.numpy._autograd.node import Node, outputs_of
from torchemu.frontends.numpy._autograd.variable import Edge, edge_of, meta_of, version_of
from torchemu.frontends.numpy._tensor.core import Tensor


class Geometry(NamedTuple):
    """The places of a tensor's elements in its storage, counted in elements."""

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int


def geometry_of(t: Tensor) -> Geometry:
    """The tensor's."""
    return Geometry(t._shape, t._steps(), t._offset)


def rebuild(t: Tensor, base: Tensor) -> None:
    """Gives a view the history that its memory has got by a write into it, into base or into another view."""
    if t.dtype is base.dtype:
        meta = meta_of(t)
        meta.requires_grad, meta.node, meta.output = True, AsStridedBackward0(t, base), 0
        meta.version = version_of(t)


class AsStridedBackward0(Node):
    """Any view, without how it was made."""

    def __init__(self, view: Tensor, base: Tensor) -> None:
        super().__init__([edge_of(base)], outputs_of([view]))
        self._view, self._base = geometry_of(view), geometry_of(base)

    def apply(self, grads: list[Tensor | None]) -> Sequence[Any]:
        """Zeros, but for the view's elements."""
        grad = grads[0]
        return [None if grad is None else spread(grad, self._view, self._base)]


class CopySlices(Node):
    """A write into a view, as one into the tensor that it is a view of.

    Args:
        call: the write, recorded for the view.
        view: the view.
        base: the tensor.
        edge: where base's gradient went before.
    """

    def __init__(self, call: Node, view: Tensor, base: Tensor, edge: Edge | None) -> None:
        super().__init__([edge, *call.edges[1:]], outputs_of([base]))
        self._call, self._view, self._base = call, geometry_of(view), geometry_of(base)

    def apply(self, grads: list[Tensor | None]) -> Sequence[Any]:
        """The call's gradient takes the place of the part that the view is."""
        grad = grads[0]
        if grad is None:
            return [None] * len(self.edges)
        whole = grad.new_empty_strided(self._base.shape, self._base.strides).copy_(grad)
        part = whole.as_strided(self._view.shape, self._view.strides, self._view.offset - self._base.offset)
        first, *others = self._call.apply([part.clone()])
        if self.edges[0] is None:
            return [None, *others]
        if first is None:
            part.zero_()
        else:
            part.copy_(first)
        return [whole, *others]

    def name(self) -> str:
        """With PyTorch's namespace."""
        return f"torch::autograd::{type(self).__name__}"

    def release(self) -> None:
        """Lets go what the call keeps."""
        self._call.release()


def spread(grad: Tensor, view: Geometry, base: Geometry) -> Tensor:
    """A tensor like base of zeros, with grad added where the view's elements are."""
    whole = grad.new_empty_strided(base.shape, base.strides).zero_()
    repeated = [axis for axis, (n, step) in enumerate(zip(view.shape, view.strides, strict=True)) if not step and n > 1]
    if repeated:
        grad = grad.sum(repeated, keepdim=True)
    shape = tuple([1 if axis in repeated else n for axis, n in enumerate(view.shape)])
    offset = view.offset - base.offset
    if _overlaps(shape, view.strides):
        flat = whole.as_strided((_reach(base),), (1,), 0)
        flat.index_add_(0, _positions(grad, shape, view.strides, offset), grad.reshape(-1))
    else:
        whole.as_strided(shape, view.strides, offset).copy_(grad)
    return whole


def _overlaps(shape: Sequence[int], strides: Sequence[int]) -> bool:
    """Reports whether two elements may be in one place: True also for some shapes whose elements are apart."""
    reach = 0
    for step, n in sorted((step, n) for step, n in zip(strides, shape, strict=True) if n > 1):
        if step <= reach:
            return True
        reach += step * (n - 1)
    return False


def _reach(g: Geometry) -> int:
    """Returns how many elements of memory it lies in."""
    return 1 + sum((n - 1) * step for n, step in zip(g.shape, g.strides, strict=True)) if 0 not in g.shape else 0


def _positions(like: Tensor, shape: Sequence[int], strides: Sequence[int], offset: int) -> Tensor:
    """The places of the elements in memory, as a vector on the same device."""
    from torchemu import dtypes
    from torchemu.frontends.numpy._tensor.creation import of_array

    places = np.full(shape, offset, np.int64)
    for axis, (n, step) in enumerate(zip(shape, strides, strict=True)):
        places += (np.arange(n) * step).reshape([-1 if a == axis else 1 for a in range(len(shape))])
    return of_array(places.reshape(math.prod(shape)), dtypes.int64, like.device)
