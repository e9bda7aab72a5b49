"""Steps in which PyTorch's kernels for CUDA go along a dimension of softmax that is not the last (its
native/cuda/SoftMax.cu).

A thread has a column, and goes along the dimension element by element; where columns are few and long, threads of a
block share one, and read their elements far apart. A block has at most 1,024 threads. So a softmax takes long not for
its bytes but for the steps that come one after another, and for the blocks that a processor has.
"""

from __future__ import annotations

import math
from typing import NamedTuple

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
