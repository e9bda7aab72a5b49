"""Kernels of PyTorch for CUDA that reduce dimensions, in nanoseconds of an H200.

How threads, blocks and the whole grid share what belongs to a result follows PyTorch's rules (its
native/cuda/Reduce.cuh). A thread takes its values one after another, and where blocks share a result the last of them
puts theirs together. So a reduction takes long not only for its bytes but for the values of a thread, for the blocks
that come one after another, and for those that share. What these take is read off benches/fidelity/h200_reductions.csv.
"""

from __future__ import annotations

import functools
import math
from typing import NamedTuple

from torchemu.frontends.torch.device import h200


class Reduced(NamedTuple):
    """Elements that are reduced.

    Attributes:
        results, values: how many results there are, and elements of each; neither is 0.
        itemsize: bytes of an element.
        is_fastest: elements that lie side by side belong to one result.
    """

    results: int
    values: int
    itemsize: int
    is_fastest: bool

    @property
    def elements(self) -> int:
        """All elements."""
        return self.results * self.values


class Kind(NamedTuple):
    """Times of a kind of reduction, in ns.

    Attributes:
        value, four: for a value of a thread, and for four of several results that it takes at once.
        wave, wave_value: for as many blocks as the processors have room for, and for each value of their threads.
        shared, share: for blocks that share results, and for each of them that a thread puts together.
        element: for each element that lies apart from others of its result.
    """

    value: int
    four: int
    wave: int
    wave_value: int
    shared: int
    share: int
    element: float


PLAIN = Kind(50, 50, 1700, 60, 3700, 260, 0)
HALVES = Kind(80, 220, 1900, 120, 5000, 400, 0)
PLACED = Kind(105, 188, 2600, 290, 6500, 600, 0.0026)
MOMENTS = Kind(120, 220, 2600, 330, 6500, 600, 0.0028)
"""Sums, products and largest values; the largest of 16 bits; those with their places; variances."""

_THREADS, _WARP, _TOGETHER = 512, 32, 4
_RESIDENT = 2048  # threads of a processor
_LEAST, _MOST = 16, 256  # values of a thread at least, where blocks share a result, and at most before they do


@functools.lru_cache(4096)
def taking(reduced: Reduced, kind: Kind, processors: int) -> float:
    """Returns what a reduction takes."""
    shape = _Shape.of(reduced)
    blocks = _sharing(reduced, shape, processors)
    values = -(-reduced.values // (shape.along * blocks))
    alone = values * (kind.four if shape.together == _TOGETHER else kind.value)
    waves = -(-reduced.results // shape.across) * blocks / (processors * (_RESIDENT // shape.threads))
    apart = 0 if reduced.is_fastest else kind.element * reduced.elements
    busy = max(alone, (kind.wave + kind.wave_value * values) * waves, apart)
    if blocks == 1:
        return busy
    together = shape.threads if reduced.is_fastest else shape.height
    moved = reduced.elements * reduced.itemsize / h200.BANDWIDTH  # before the last block of those that share comes
    return max(busy, moved) + kind.shared + kind.share * -(-blocks // together)


class _Shape(NamedTuple):
    """A block.

    Attributes:
        threads: that it has.
        height: of them in the other dimension than elements that lie side by side.
        along: threads that share a result.
        across: results of a block.
        together: results whose values a thread takes at once.
        is_shared: all of its threads that take values of a result share that, and not those of a warp alone.
    """

    threads: int
    height: int
    along: int
    across: int
    together: int
    is_shared: bool

    @classmethod
    def of(cls, reduced: Reduced) -> _Shape:
        """Returns the block that PyTorch chooses."""
        together = 1 if reduced.is_fastest else math.gcd(reduced.results, _TOGETHER)
        most = _THREADS // together
        close, others = (reduced.values, reduced.results)[:: 1 if reduced.is_fastest else -1]
        close = max(1, close // together)
        wide, high = min(_last_power(close), most), min(_last_power(others), most)
        height = min(high, most // min(wide, _WARP))
        width = min(wide, most // height)
        along, across = (width, 1) if reduced.is_fastest else (1, width * together)
        if -(-reduced.values // along) >= min(height * 16, _MOST):
            return cls(width * height, height, along * height, across, together, True)
        return cls(width * height, height, along, across * height, together, False)


def _last_power(number: int) -> int:
    """Returns the largest power of two that is no larger than a number."""
    return 1 << (number.bit_length() - 1)


def _sharing(reduced: Reduced, shape: _Shape, processors: int) -> int:
    """Returns how many blocks share a result."""
    values = -(-reduced.values // shape.along)
    grid, room = -(-reduced.results // shape.across), processors * (_RESIDENT // shape.threads)
    if not shape.is_shared or values < _MOST or grid > room:
        return 1
    return max(min(-(-room // grid), -(-values // _LEAST)), -(-values // _MOST))
