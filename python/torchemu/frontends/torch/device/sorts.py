"""Kernels of PyTorch for CUDA that sort rows and pick of them by rank, in nanoseconds of an H200.

Which kernels there are follows PyTorch's rules (its native/cuda/Sort.cu, SortStable.cu, TensorTopK.cu, Sorting.cu):
rows of up to 4,096 elements are sorted by a block of threads each, longer ones digit by digit, in passes through all of
them. So these take long not for their bytes but for the passes that come one after another, and for the blocks that a
processor has. What a pass takes is read off benches/fidelity/h200_sorts.csv.
"""

from __future__ import annotations

import math
from typing import NamedTuple


class Rows(NamedTuple):
    """Rows that are sorted, or of which elements are picked.

    Attributes:
        number, length: how many, and elements of each; neither is 0.
        itemsize: bytes of an element.
        is_last: the elements of a row lie side by side.
    """

    number: int
    length: int
    itemsize: int
    is_last: bool

    @property
    def elements(self) -> int:
        """Elements of all rows."""
        return self.number * self.length

    @property
    def apart(self) -> float:
        """Nanoseconds in which elements are fetched that lie apart from those of their row."""
        return 0 if self.is_last or self.length <= _TINY else 0.028 * self.elements


class _Block(NamedTuple):
    """A kernel of which a block sorts a row.

    Attributes:
        length: the most elements of a row.
        alone: ns of a pass, where a processor has no other.
        beside: blocks of a processor that take no longer than one.
    """

    length: int
    alone: int
    beside: float


_BLOCKS = (_Block(128, 400, 6.4), _Block(1024, 1350, 4.7), _Block(2048, 1500, 2.6), _Block(4096, 1700, 1.5))
_SMALL = _BLOCKS[-1].length
_AROUND = 4  # passes as long as which a block loads and stores its row
_TINY = 32  # elements of a row that are sorted by comparing them
_TINY_ALONE, _TINY_BESIDE = 4500, 50  # ns, and rows of a processor; half as many of more than 16 elements

_FEW = 128  # rows from which on blocks sort one each, digit by digit
_LONG = 1_000_000  # elements of a row from which on few are sorted one after another


def sorting(rows: Rows, processors: int) -> float:
    """Returns what sorting takes, with the places that elements had."""
    if rows.length <= _SMALL:
        copies = 3000 + (0.0025 + 0.001 * rows.itemsize) * rows.elements
        return copies + _by_blocks(rows, processors) + rows.apart
    if rows.number == 1 or (rows.number < _FEW and rows.length >= _LONG):
        return rows.number * by_digits(rows.length, rows.itemsize) + rows.apart
    if rows.number < _FEW:  # all of them as one, and then by rows
        return by_digits(rows.elements, rows.itemsize) + 16_000 + 0.022 * rows.elements + rows.apart
    passes = math.ceil(8 * rows.itemsize / 6)  # of six bits
    a_pass = 1.5 * rows.length * max(1.26, math.ceil(rows.number / processors))
    return passes * a_pass + 5000 + 0.008 * rows.elements + rows.apart


def _by_blocks(rows: Rows, processors: int) -> float:
    """Returns what it takes where a block sorts each row, four bits at a time."""
    if rows.length <= _TINY:
        beside = _TINY_BESIDE if rows.length <= _TINY // 2 else _TINY_BESIDE / 2
        return _TINY_ALONE * max(1.0, rows.number / (processors * beside))
    block = next(block for block in _BLOCKS if rows.length <= block.length)
    passes = 2 * rows.itemsize + _AROUND
    return passes * block.alone * max(1.0, rows.number / (processors * block.beside))


def by_digits(elements: int, itemsize: int) -> float:
    """Returns what it takes to sort one row in passes through memory, one for each byte of an element."""
    return 10_000 + itemsize * (7000 + 0.0132 * elements)


def picking(rows: Rows, picked: int, is_sorted: bool, processors: int) -> float:
    """Returns what it takes to pick the largest elements of rows, or the smallest, and to sort those."""
    found = _by_many_blocks(rows) if _is_for_many_blocks(rows) else _by_a_block(rows, processors)
    if is_sorted and picked > 1:
        few = rows._replace(length=picked, is_last=True)
        found += 500 + _by_blocks(few, processors) if picked <= _SMALL else sorting(few, processors)
    return found + rows.apart


_MANY = ((20, 20_000), (40, 10_000), (80, 8_000), (199, 5_000), (799, 3_000), (4_000, 800))
_MOST = 400
"""Rows up to a number are each shared by blocks from a length on; more than all of these, from the last one on."""


def _is_for_many_blocks(rows: Rows) -> bool:
    """Says whether several blocks share a row."""
    return rows.length >= next((length for most, length in _MANY if rows.number <= most), _MOST)


def _by_many_blocks(rows: Rows) -> float:
    """Returns what it takes to find the elements digit by digit, a pass for each byte."""
    return 10_000 + rows.itemsize * (7500 + 0.003 * rows.elements) + 11 * rows.number


def _by_a_block(rows: Rows, processors: int) -> float:
    """Returns what it takes a block for each row to find the elements, two bits at a time."""
    passes = 0.55 + 0.11 * rows.itemsize
    return passes * (4300 + 6.2 * min(rows.length, 1024) + 3600 * _rounds(rows)) * _crowded(rows, processors)


def halving(rows: Rows, processors: int) -> float:
    """Returns what it takes to find the element of a rank in each row, with its place."""
    return (2500 + 4 * min(rows.length, 1024) + 2200 * _rounds(rows)) * _crowded(rows, processors) + rows.apart


def _rounds(rows: Rows) -> int:
    """Returns how often the threads of a block come to their next element of a row."""
    return (rows.length - 1) // 1024


def _crowded(rows: Rows, processors: int) -> float:
    """Returns how many times as long blocks take that share processors."""
    threads = min(1024, -(-rows.length // 32) * 32)
    return 1 + 1.8 * rows.number / (processors * min(32, 2048 // threads))


def drawing(rows: Rows, drawn: int, is_replaced: bool, processors: int) -> float:
    """Returns what it takes to draw elements of rows by their weights, in a dozen kernels."""
    if is_replaced and drawn > 1:
        return 8000 + 0.015 * rows.elements
    more = picking(rows, drawn, True, processors) if drawn > 1 else 0
    return 20_000 + 0.009 * rows.elements + more


def accumulating(indices: int, rows: int, width: int) -> float:
    """Returns what it takes to sort indices and to add to each row what has its index.

    Args:
        indices: how many.
        rows, width: of what is added to, and elements of each.
    """
    sort = 20_000 if indices <= 1024 else 42_000 + 0.07 * indices
    repeated = 600 * indices / max(1, rows)  # one after another
    return sort + repeated + indices * max(0.22, 0.0026 * width)
