"""Operations that read or write the part of an operand that indices name: the bytes and elements of it."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from torchemu.frontends.torch.device import embeddings, softmaxes, sorts
from torchemu.frontends.torch.device.ways import ALIKE, Counted, CounterOfSeveral, staged

Part = Callable[[Sequence[Any], Tensor], Counted]
"""A function that counts a kernel by its arguments and its result."""


def _in_memory(indices: Any) -> int:
    """Returns the bytes that indices take in memory, each once, where they are expanded."""
    if isinstance(indices, (list, tuple)):
        return sum(_in_memory(i) for i in indices)
    if not isinstance(indices, Tensor):
        return 0
    return math.prod(n for n, step in zip(indices.shape, indices.stride(), strict=True) if step) * indices.itemsize


def _read(of: int, by: int) -> Part:
    """Counts operations that read what is picked of one operand, by another one's indices."""

    def count(args: Sequence[Any], out: Tensor) -> Counted:
        return min(args[of].nbytes, out.nbytes) + out.nbytes + _in_memory(args[by]), out.numel(), ALIKE

    return count


_ROW = 0.61
"""Nanoseconds that the block takes which copies a row, on an H200, however short it is."""

_CALCULATED = 0.0058
"""Nanoseconds of an element whose place is calculated from several indices."""

_LEAST = 16
"""Bytes of a row at least that a block copies."""


def _read_rows(of: int, by: int) -> Part:
    """Counts operations that read rows of one operand, by another one's indices."""
    read = _read(of, by)

    def count(args: Sequence[Any], out: Tensor) -> Counted:
        counted, indices = read(args, out), args[by]
        given = indices if isinstance(indices, Tensor) else indices[0] if len(indices) == 1 else None
        if given is None and sum(i is not None and i.dtype is not torch.bool for i in indices) > 1:
            return staged(counted[0], _CALCULATED * out.numel())
        rows = given.numel() if given is not None and given.dtype is not torch.bool else 0
        if not rows or out.nbytes < _LEAST * rows:
            return counted
        return staged(counted[0], _ROW * rows)

    return count


def _written(by: int, source: int) -> Part:
    """Counts operations that write elements of their first operand, by indices, from a source or one value for all."""

    def count(args: Sequence[Any], out: Tensor) -> Counted:
        elements = _places(args[0], args[by])
        given = args[source] if len(args) > source else None
        values = min(_in_memory(given), elements * out.itemsize)
        return 2 * elements * out.itemsize + values + _in_memory(args[by]), elements, ALIKE

    return count


_ALONE = 0.235
"""Nanoseconds that an element takes to which something is added, where it is not for its neighbours."""


def _put(args: Sequence[Any], out: Tensor) -> Counted:
    """Counts a write by indices of some dimensions, which are sorted where it adds."""
    nbytes, elements, _ = counted = _written(1, 2)(args, out)
    indices = max((i.numel() for i in args[1] if i is not None), default=0)
    if len(args) < 4 or not args[3] or not elements or not indices:
        return counted
    if args[1][0] is None and len(args[1]) == args[0].dim() and args[1][-1] is not None:
        return staged(nbytes, sorts.accumulating(indices, indices, 1) + _ALONE * elements)
    width = max(1, elements // indices)
    return staged(nbytes, sorts.accumulating(indices, out.numel() // width, width))


def _places(of: Tensor, indices: Any) -> int:
    """Returns how many elements of a tensor indices name: rows for indices of some dimensions, else one for each."""
    if not isinstance(indices, (list, tuple)):
        return int(indices.numel())
    given = [i for i in indices if i is not None]
    if any(i.dtype is torch.bool for i in given):
        return of.numel()
    indexed = math.prod(n for n, i in zip(of.shape, indices, strict=False) if i is not None)
    return max(i.numel() for i in given) * (of.numel() // indexed if indexed else 0)


def _rows(passes: int) -> Part:
    """Counts operations that write rows of their first operand: a dimension, indices, and a source or one value.

    Args:
        passes: how often they read or write as much as the rows have.
    """

    def count(args: Sequence[Any], out: Tensor) -> Counted:
        given, along = args[3], out.shape[args[1]] if out.dim() else 1
        one = out.numel() // along if along else 0
        elements = given.numel() if isinstance(given, Tensor) and given.dim() else args[2].numel() * one
        return passes * elements * out.itemsize + _in_memory(args[2]), elements, ALIKE

    return count


def _copied(count: Part) -> Part:
    """Counts an operation that does to a copy what another one does in place."""

    def more(args: Sequence[Any], out: Tensor) -> Counted:
        nbytes, elements, way = count(args, out)
        return nbytes + 2 * out.nbytes, elements, way

    return more


def _of_classes(args: Sequence[Any], out: Tensor) -> Counted:
    """Counts the gradient of a loss that looks at one class of each row; the others' are zeros."""
    rows = args[2].numel()
    took = softmaxes.handing_out(rows, out.nbytes) if rows else 0
    return staged(out.nbytes + 2 * args[2].nbytes, took)


_SORTED = 3072
"""Indices of an embedding beyond which those of its gradient are sorted, so that each row is written once."""


def _of_table(args: Sequence[Any], out: Tensor) -> Counted:
    """Counts the gradient of an embedding's table, which is filled with zeros before."""
    given = args[1].numel()
    if 0 < given <= _SORTED:
        moved = args[0].nbytes + _in_memory(args[1]) + out.nbytes
        return staged(moved, embeddings.gradient_of_few(given, out.shape[-1], out.nbytes))
    return _of_sorted(args, out)


def _of_sorted(args: Sequence[Any], out: Tensor) -> Counted:
    """Counts the gradient of a table whose indices are sorted."""
    given, rows = args[1].numel(), out.shape[0]
    took = embeddings.gradient(given, rows, out.shape[-1], out.nbytes) if given and out.numel() else 0
    return staged(args[0].nbytes + _in_memory(args[1]) + out.nbytes, took)


def _of_bags(mode: int) -> Part:
    """Counts the gradient of a table whose rows were added up in bags.

    Args:
        mode: the argument that says how.
    """

    def count(args: Sequence[Any], out: Tensor) -> Counted:
        if args[mode] == _LARGEST:  # each bag adds its gradient where its largest elements were
            return 3 * args[0].nbytes + out.nbytes, args[0].numel(), ALIKE
        return _of_sorted(args, out)

    return count


_LARGEST = 2  # of the modes of bags, as PyTorch numbers them


def _bags(args: Sequence[Any], kwargs: dict[str, Any], moved: int) -> Counted:
    """Counts bags of a table's rows. Of the table only rows that indices name are read; they and the bags' offsets are,
    and as many integers are written: the bag of each index, and how many each has."""
    table, indices, bags = args[0], args[1].numel(), args[2].numel()
    rows, width = table.shape
    touched = (embeddings.distinct(indices, rows) + bags) * width * table.itemsize + 2 * (
        args[1].nbytes + args[2].nbytes
    )
    return staged(touched, embeddings.adding(bags, indices / bags, width) if bags else 0)


_PLACED = {
    "scatter": _written(2, 3), "scatter_add": _written(2, 3), "scatter_reduce": _written(2, 3),
    "index_put": _put, "index_add": _rows(3), "index_reduce": _rows(3), "index_copy": _rows(2),
    "index_fill": _rows(1),
}  # fmt: skip

PARTS: dict[str, Part] = {
    "gather": _read(0, 2), "index_select": _read_rows(0, 2), "take": _read(0, 1), "embedding": _read_rows(0, 1),
    "index": _read_rows(0, 1), "_unsafe_index": _read_rows(0, 1), "embedding_dense_backward": _of_table,
    "_embedding_bag_backward": _of_bags(8), "_embedding_bag_dense_backward": _of_bags(7),
    "nll_loss_backward": _of_classes,
    **{f"{name}_": count for name, count in _PLACED.items()}, "_index_put_impl_": _put,
    **{name: _copied(count) for name, count in _PLACED.items()},
}  # fmt: skip
"""Functions that count operations which touch a part of an operand, by their names."""

SEVERAL: dict[str, CounterOfSeveral] = {"_embedding_bag": _bags, "_embedding_bag_forward_only": _bags}
"""Functions that count those with several results, by their names."""
