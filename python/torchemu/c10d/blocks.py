"""The tensors that a rank gives to a collective or receives from it, as the Go core is told of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from torchemu.bridge.calls import Side
from torchemu.bridge.ints import Pieces
from torchemu.c10d.checks import check_list, splits
from torchemu.runtime.buffer import BUFFERS, Buffer, buffer_of, class_of


class Blocks(list[Any]):
    """Tensors of which the core is told more than which they are.

    Attributes:
        different: the buffers that there are to look at: the one that they are, one after another, or else theirs.
        equal: how many equal blocks the core cuts each of the tensors into.
        rows: how many rows of the only tensor each rank has; () where they are equal.
    """

    __slots__ = ("different", "equal", "rows")

    def __init__(
        self,
        tensors: Iterable[Any],
        different: Sequence[Buffer] | None = None,
        equal: int = 1,
        rows: Sequence[int] = (),
    ) -> None:
        super().__init__(tensors)
        self.different = [buffer_of(tensor) for tensor in self] if different is None else different
        self.equal, self.rows = equal, rows

    @property
    def side(self) -> Side:
        """The tensors as the core is told of them."""
        if self.equal == 1 and not self.rows:
            return _side(self.different)
        return Pieces([buffer.core_handle for buffer in self.different], self.equal, self.rows)


def side_of(tensors: Sequence[Any]) -> Side:
    """Returns tensors that a rank gives or receives as the core is told of them."""
    if isinstance(tensors, Blocks):
        return tensors.side
    if len(tensors) == 1:
        only = tensors[0]
        return (only if type(only) in BUFFERS else buffer_of(only)).core_handle
    return _side([buffer_of(tensor) for tensor in tensors])


def _side(buffers: Sequence[Buffer]) -> Side:
    if len(buffers) == 1:
        return buffers[0].core_handle
    return Pieces([buffer.core_handle for buffer in buffers]) if buffers else 0


def blocks(parameter: str, tensors: list[Any]) -> Blocks:
    """A list with a tensor for each rank.

    Raises:
        TypeError: it is not a list of tensors.
    """
    whole = _whole(tensors) if isinstance(tensors, list) and len(tensors) > 1 else None
    return Blocks(tensors, check_list(tensors, parameter) if whole is None else (whole,))


def _whole(parts: list[Any]) -> Buffer | None:
    """Returns the buffer of which these are the equal parts, one after another; None where there is none."""
    tensors = class_of(parts[0])
    return None if tensors is None else tensors.whole(parts)


def repeated(times: int, tensors: Sequence[Any]) -> Blocks:
    """Tensors each of which has a block for each of so many ranks."""
    return Blocks(tensors, equal=times)


def cut(tensor: Any, sizes: Sequence[int] | None, world: int) -> Sequence[Any]:
    """A tensor of which so many rows each are for, or from, a rank; without sizes equally many.

    Raises:
        RuntimeError, ValueError: as splits does.
    """
    t = buffer_of(tensor)
    rows = splits(sizes, t, world)
    if rows.count(rows[0]) == world and t.is_contiguous():
        return [tensor]
    return Blocks([tensor], (t,), rows=rows)
