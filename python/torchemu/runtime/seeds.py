"""Who hears of seeds that ranks give to random and numpy.random."""

from __future__ import annotations

from collections.abc import Callable

hearers: list[Callable[[Callable[[], object]], object]] = []
"""They are called with what gives the running rank the same seed, before it has it."""
