"""The tensors that a rank gives to a collective or receives from it, as the Go core is told of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from torchemu.c10d.checks import check_list, splits
from torchemu.frontends.numpy._tensor import Tensor
from torchemu.frontends.numpy._tensor.core import aliased_to


class Blocks(list[Tensor]):
    """Tensors of which the core is told more than which they are.

    Attributes:
        whole: the tensor that they are, one after another: all that there is to look at; None where they are in none.
    """

    __slots__ = ("_text", "whole")

    def __init__(self, tensors: Iterable[Tensor], whole: Tensor | None = None, text: str | None = None) -> None:
        super().__init__(tensors)
        self.whole, self._text = whole, text

    @property
    def different(self) -> Sequence[Tensor]:
        """Those of which each may be something else than the one before."""
        return self if self.whole is None else (self.whole,)

    @property
    def text(self) -> str:
        """What the core is told; see pybind's parseTensors."""
        return self._text if self._text is not None else _handles(self.different)


def text_of(tensors: Sequence[Tensor]) -> str:
    """Tensors, as go.Issue takes them."""
    return tensors.text if isinstance(tensors, Blocks) else _handles(tensors)


def _handles(tensors: Sequence[Tensor]) -> str:
    if len(tensors) == 1:
        return str(tensors[0]._handle)
    return ",".join([str(t._handle) for t in tensors])


def blocks(parameter: str, tensors: list[Tensor]) -> Blocks:
    """A list with a tensor for each rank.

    Raises:
        TypeError: it is not a list of tensors.
    """
    whole = _whole(tensors) if isinstance(tensors, list) else None
    if whole is None:
        check_list(tensors, parameter)
    return Blocks(tensors, whole)


def _whole(parts: list[Tensor]) -> Tensor | None:
    """The tensor of which these are the equal parts, one after another; None where there is none."""
    if len(parts) < 2 or type(parts[0]) is not Tensor or not parts[0].is_contiguous():
        return None
    first, size = parts[0], parts[0].numel()
    storage, kind, shape, strides, at = first._storage, first.dtype, first._shape, first._strides, first._offset
    for t in parts:
        if (
            type(t) is not Tensor
            or t._storage is not storage
            or t._offset != at
            or not (t._shape is shape or t._shape == shape)
            or not (t._strides is strides or t._strides == strides)
            or t.dtype is not kind
        ):
            return None
        at += size
    if size == 0:
        return None
    numel = size * len(parts)
    if first._base is not None and _holds(first._base, first, numel):
        return first._base  # the core knows it already, if this is not the first time
    return aliased_to(storage, kind, first.device, (numel,), (1,), first._offset)


def _holds(base: Tensor, first: Tensor, numel: int) -> bool:
    """Whether a tensor is just so many elements from the first of another one on, which is a view of it."""
    same = base._offset == first._offset and base.dtype is first.dtype
    return same and base.numel() == numel and base.is_contiguous()


def repeated(times: int, tensors: Sequence[Tensor]) -> Blocks:
    """Tensors each of which has a block for each of so many ranks."""
    return Blocks(tensors, text=f"{times}*{text_of(tensors)}")


def cut(t: Tensor, sizes: Sequence[int] | None, world: int) -> Sequence[Tensor]:
    """A tensor of which so many rows each are for, or from, a rank; without sizes equally many.

    Raises:
        RuntimeError, ValueError: as splits does.
    """
    rows = splits(sizes, t, world)
    if rows.count(rows[0]) == world and t.is_contiguous():
        return [t]
    return Blocks([t], text=f"{t._handle}/{'/'.join(map(str, rows))}")
