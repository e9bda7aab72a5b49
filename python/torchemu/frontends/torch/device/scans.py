"""Stages in which PyTorch's kernels for CUDA scan the last dimension of a matrix (its native/cuda/ScanUtils.cuh).

A block has 512 threads, of which as many share a row as rows and columns are in proportion. They take their rows in
pieces, of two elements for a thread, and put each together in a tree. So a scan takes long not for its bytes but for
the pieces that come one after another, and for the blocks that a processor has.
"""

from __future__ import annotations

import math

_THREADS = 9  # of a block, as a power of two
_LEAST = 4  # of them for a row

_BEGIN = 10  # stages of a piece beside those of its tree: what it is read in, and written
_FAR = 5  # stages that it is read in more where no cache holds it
_BESIDE = 0.6  # of a piece's stages, what a processor takes for it that has several
_CACHED = 12 << 20  # bytes up to which an operand stays in caches


def is_far(nbytes: int) -> bool:
    """Returns whether caches are too small for an operand."""
    return nbytes > _CACHED


def stages(rows: int, columns: int, nbytes: int, processors: int) -> int:
    """Returns how many stages come one after another.

    Args:
        rows, columns: of the matrix; neither is 0.
        nbytes: of the matrix.
        processors: of the device.
    """
    log = _threads_of_a_row(rows, columns)
    pieces = -(-columns // (2 << log))
    blocks = -(-rows // (1 << (_THREADS - log)))
    alone = _BEGIN + log + (_FAR if is_far(nbytes) else 0)
    together = _BESIDE * (_BEGIN + log) * -(-blocks // processors)
    return math.ceil(pieces * max(alone, together))


def _threads_of_a_row(rows: int, columns: int) -> int:
    """Returns how many threads share a row, as a power of two. Where rows are more than 512 times as many as columns, a
    number without sign is below zero in PyTorch, and a row has a whole block."""
    twice = _THREADS + (columns - 1).bit_length() - (rows - 1).bit_length()
    return min(max(twice // 2, _LEAST), _THREADS) if twice >= 0 else _THREADS
