"""Nanoseconds that an H200 takes for kernels that go through lists of tensors, as optimizers have them.

A block takes a chunk of a tensor, and a launch so many chunks of so many tensors, as PyTorch's multi_tensor_apply hands
them out. Figures were read off benches/fidelity/h200_updates.csv.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator

from torchemu.frontends.torch.device import h200

_CHUNK = 65_536
"""Elements of a tensor that a block takes."""

_BLOCKS = 320
"""Blocks of a launch at most."""

_TENSORS = (110, 64, 48, 36, 30)
"""Tensors of a launch at most, by the number of lists that it goes through."""

_LAUNCH = 1400.0
"""Nanoseconds of a launch whose blocks have next to nothing to do."""

_OF_LIST = 400.0
"""Nanoseconds that each list beyond two takes more: a launch carries addresses of all tensors."""

_SHARE = (34.0, 28.5)
"""Bytes that a processor moves in a nanosecond, and of elements of fewer than four bytes."""

_CACHED = 30 << 20
"""Bytes up to which caches hold the tensors from one time to the next."""

_CACHED_SHARE = 110.0
"""Bytes that a processor moves of such."""

_CACHED_WAITS = 0.65
"""The part of its time that an element of such waits."""


@functools.lru_cache(maxsize=1024)
def went_through(
    sizes: tuple[int, ...], lists: int, moved: int, waits: float, works: float, is_short: bool = False
) -> float:
    """Returns the nanoseconds of the launches for some tensors, beside what the first one's launch takes.

    Args:
        sizes: elements of each tensor of a list.
        lists: how many there are.
        moved: bytes, of all.
        waits: nanoseconds that an element takes a block at least.
        works: nanoseconds that it takes a processor at least, which may have several blocks.
        is_short: elements have fewer than four bytes.
    """
    total = sum(sizes)
    if not total:
        return 0.0
    is_cached = moved <= _CACHED
    works = max(works, moved / total / (_CACHED_SHARE if is_cached else _SHARE[is_short]))
    if is_cached:
        waits *= _CACHED_WAITS
    most = _TENSORS[min(lists, len(_TENSORS)) - 1]
    base = _LAUNCH + _OF_LIST * max(0, lists - 2)
    took = (longest * max(waits, -(-blocks // h200.PROCESSORS) * works) for blocks, longest in _launches(sizes, most))
    return sum(base + each for each in took) - _LAUNCH


def _launches(sizes: tuple[int, ...], most: int) -> Iterator[tuple[int, int]]:
    """Yields the blocks of each launch, and the most elements that one of them has.

    Args:
        most: tensors of a launch at most.
    """
    tensors, blocks, longest = 0, 0, 0
    for size in sizes:
        left, tensors = size, tensors + (size > 0)
        while left:
            chunks = min(-(-left // _CHUNK), _BLOCKS - blocks)
            longest = max(longest, min(left, _CHUNK))
            blocks, left = blocks + chunks, max(0, left - chunks * _CHUNK)
            if blocks == _BLOCKS or (tensors == most and not left):
                yield blocks, longest
                tensors, blocks, longest = int(left > 0), 0, 0
    if blocks:
        yield blocks, longest
