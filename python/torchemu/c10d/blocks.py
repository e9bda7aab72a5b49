"""The tensors that a rank gives to a collective or receives from it, as the Go core is told of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from torchemu.c10d.checks import check_list, splits
from torchemu.runtime.buffer import BUFFERS, Buffer, buffer_of, class_of


class Blocks(list[Any]):
    """Tensors of which the core is told more than which they are.

    Attributes:
        different: the buffers that there are to look at: the one that they are, one after another, or else theirs.
    """

    __slots__ = ("_text", "different")

    def __init__(
        self, tensors: Iterable[Any], different: Sequence[Buffer] | None = None, text: str | None = None
    ) -> None:
        super().__init__(tensors)
        self.different = [buffer_of(tensor) for tensor in self] if different is None else different
        self._text = text

    @property
    def text(self) -> str:
        """The text that the core is told; see pybind's parseTensors."""
        return self._text if self._text is not None else _handles(self.different)


def text_of(tensors: Sequence[Any]) -> str:
    """Returns tensors as go.Issue takes them."""
    if isinstance(tensors, Blocks):
        return tensors.text
    if len(tensors) == 1:
        only = tensors[0]
        return str((only if type(only) in BUFFERS else buffer_of(only)).core_handle)
    return _handles([buffer_of(tensor) for tensor in tensors])


def _handles(buffers: Sequence[Buffer]) -> str:
    if len(buffers) == 1:
        return str(buffers[0].core_handle)
    return ",".join([str(buffer.core_handle) for buffer in buffers])


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
    return Blocks(tensors, text=f"{times}*{text_of(tensors)}")


def cut(tensor: Any, sizes: Sequence[int] | None, world: int) -> Sequence[Any]:
    """A tensor of which so many rows each are for, or from, a rank; without sizes equally many.

    Raises:
        RuntimeError, ValueError: as splits does.
    """
    t = buffer_of(tensor)
    rows = splits(sizes, t, world)
    if rows.count(rows[0]) == world and t.is_contiguous():
        return [tensor]
    return Blocks([tensor], (t,), f"{t.core_handle}/{'/'.join(map(str, rows))}")
