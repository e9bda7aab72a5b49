"""How kernels go through memory, and what is counted of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from torch import Tensor

Counted = tuple[int, int, str]
"""Bytes that a kernel moves, elements that it takes, and its way through memory."""

Counter = Callable[[Sequence[Any], Tensor, int], Counted]
"""A function that counts a kernel, by its arguments, its result and the bytes of all operands."""

ALIKE, STRIDED, TRANSPOSED, SHORT, EVAL = "vector", "strided", "transposed", "short", "eval"
CHANNELS, CHANNELS_LAST = "channels", "channels_last"
SERIAL, SERIAL_FAR, SHARED, STAGED = "serial", "serial_far", "shared", "staged"
"""Ways of kernels, as topologies name them: with vectorized accesses to memory, without, and in another order; with
short rows; by statistics that are given; of images channel by channel, and with the channels last; step by step through
a dimension, of what caches hold and of more, and with threads that share a row; and in stages, of which nanoseconds of
an H200 are counted."""
