"""Steps of PyTorch's kernels for CUDA that take softmax, and that add up losses of classes (its native/cuda/SoftMax.cu
and Loss.cu).

Along the last dimension up to 1,024 elements are held by a few threads, in registers; more go through a block.

Along others a thread has a column, and goes through the dimension element by element; where columns are few and long,
threads of a block share one, and read their elements far apart. A block has at most 1,024 threads. So a softmax takes
long not for its bytes but for the steps that come one after another, and for the blocks that a processor has.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from torchemu.frontends.torch.device import h200

HELD = 1024
"""The most elements of a row that a few threads hold."""

_PIECES = {
    "_softmax": (2.4, 2400, 0.2), "_log_softmax": (1.1, 1600, 0.19), "_softmax_backward_data": (1.5, 1700, 0.27),
    "_log_softmax_backward_data": (1.3, 1200, 0.2),
}  # fmt: skip
"""Ns on an H200 that an element takes of a row that is held, what a longer row takes, and what its elements do."""


def few(processors: int) -> int:
    """Returns how many rows take as long as one."""
    return 2 * processors


def alone(name: str, length: int) -> float:
    """Returns the ns of an H200 that few rows take, by the name of the operation."""
    held, row, element = _PIECES[name]
    return held * length if length <= HELD else row + element * length


def padded(length: int) -> int:
    """Returns the elements that a row which is held counts as: threads hold a power of two, and do little at a time
    where that is small."""
    held = 1 << (length - 1).bit_length()
    return held if held > _WARP else -(-7 * held // 4)


_WARP = 32  # threads that go together


def adding_up(rows: int, nbytes: int) -> float:
    """Returns the ns of an H200 that it takes to add up what a class of each row says. One block does that.

    Args:
        nbytes: of a row.
    """
    turns = max(min(rows / _WARP, 16), rows / _THREADS)
    return 200 + turns * (430 if nbytes <= 64 or rows <= 8 * _THREADS else 740)


def handing_out(rows: int, nbytes: int) -> float:
    """Returns the ns of an H200 that it takes to fill a gradient with zeros, and to write a class of each row.

    Args:
        nbytes: of the gradient.
    """
    written = adding_up(rows, nbytes // rows)
    return 1000 + nbytes / h200.BANDWIDTH + (written if rows > 4 * _THREADS else 0.6 * written)


_BLOCK = 48 << 10  # bytes of a row that a block holds


def read(length: int, itemsize: int) -> float:
    """Returns how often the elements of a row count that is not held by few threads: a block that does not hold it
    either reads it several times."""
    return 0.275 * itemsize if length * itemsize > _BLOCK else 1.0


_THREADS = 1024  # of a block
_FEW, _LONG = 64, 64  # columns at most, elements at least, for which threads share a column

_BUSY = 0.8  # of a step, what a processor takes for one of a block of so many threads
_CLOSE = 0.6  # of a step, what is left of it where the threads of a column read the same lines of memory
_NARROW = 8  # columns up to which they do
_AGAIN = 0.6  # of a step, what is left of it where the passes after the first are from a processor's own cache
_OWN_CACHE = 64 << 10  # bytes of a block that it has
_CACHED = 24 << 20  # bytes up to which an operand stays in the device's caches


def is_far(nbytes: int) -> bool:
    """Returns whether caches are too small for an operand."""
    return nbytes > _CACHED


class Columns(NamedTuple):
    """A tensor around the dimension.

    Attributes:
        outer, length, inner: elements before the dimension, of it, and after it; none is 0.
        itemsize: bytes of an element.
    """

    outer: int
    length: int
    inner: int
    itemsize: int

    @property
    def threads(self) -> tuple[int, int]:
        """Threads that share a column, and columns of a block."""
        columns, threads = min(self.inner, _THREADS), 1
        if columns <= _FEW and self.length >= _LONG:
            while columns * threads * 2 <= _THREADS and threads * 2 <= self.length:
                threads *= 2
        return threads, columns

    def steps(self, processors: int, is_backward: bool) -> int:
        """Returns how many steps come one after another, on a device of so many processors."""
        threads, columns = self.threads
        blocks = self.outer * -(-self.inner // columns)
        steps = -(-self.length // threads) + (threads > 1)
        busy = _BUSY * -(-blocks // processors) * threads * columns / _THREADS
        return math.ceil(steps * self._part_of_a_step(threads, columns, is_backward) * max(1.0, busy))

    def _part_of_a_step(self, threads: int, columns: int, is_backward: bool) -> float:
        if threads > 1:
            return _CLOSE if columns <= _NARROW else 1.0
        is_kept = not is_backward and self.length * columns * self.itemsize <= _OWN_CACHE
        return _AGAIN if is_kept else 1.0


def columns_of(shape: tuple[int, ...], dim: int, itemsize: int) -> Columns:
    """Returns how a tensor lies around a dimension, which may be counted from the end."""
    dim %= len(shape)
    return Columns(math.prod(shape[:dim]), shape[dim], math.prod(shape[dim + 1 :]), itemsize)
