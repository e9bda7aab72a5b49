"""How kernels go through memory, and what is counted of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any
from weakref import WeakKeyDictionary

from torch import Tensor

from torchemu.frontends.torch.device import h200
from torchemu.frontends.torch.device.ground import context
from torchemu.runtime import device_properties

Counted = tuple[int, int, str]
"""Bytes that a kernel moves, elements that it takes, and its way through memory."""

STEP = 1024
"""Elements that a step or stage counts as, however many it has: it takes as long as it waits."""

Counter = Callable[[Sequence[Any], Tensor, int], Counted]
"""A function that counts a kernel, by its arguments, its result and the bytes of all operands."""

CounterOfSeveral = Callable[[Sequence[Any], dict[str, Any], int], Counted]
"""A function that counts one with several results, by its arguments and the bytes that it moves."""

ALIKE, STRIDED, TRANSPOSED, SHORT, EVAL = "vector", "strided", "transposed", "short", "eval"
CHANNELS, CHANNELS_LAST = "channels", "channels_last"
SERIAL, SERIAL_FAR, SHARED, STAGED = "serial", "serial_far", "shared", "staged"
"""Ways of kernels, as topologies name them: with vectorized accesses to memory, without, and in another order; with
short rows; by statistics that are given; of images channel by channel, and with the channels last; step by step through
a dimension, of what caches hold and of more, and with threads that share a row; and in stages, of which nanoseconds of
an H200 are counted."""


def staged(moved: int, took: float) -> Counted:
    """Returns what is counted of a kernel by the nanoseconds that it takes."""
    return moved, math.ceil(took), STAGED


def meeting(moved: int, took: float) -> Counted:
    """Returns what is counted of a kernel whose threads meet, by the nanoseconds that its work takes."""
    return staged(moved, max(took, moved / h200.BANDWIDTH) + h200.MEETING)


_processors: WeakKeyDictionary[Any, int] = WeakKeyDictionary()  # by World


def processors() -> int:
    """Returns how many processors the running rank's device has."""
    world = context().world
    found = _processors.get(world)
    if found is None:
        found = _processors[world] = device_properties.processors(world)
    return found
