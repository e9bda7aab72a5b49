"""How long a device computes, and how long it does nothing but communicate."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

Interval = tuple[float, float]


@dataclass(frozen=True)
class Pass:
    """One pass of a model on one device; times in microseconds.

    Attributes:
        time: from its start to its end.
        kernels: when something was computed.
        messages: when something was communicated.
    """

    time: float
    kernels: list[Interval]
    messages: list[Interval]

    @property
    def compute(self) -> float:
        """How long something was computed."""
        return covered(self.kernels)

    @property
    def exposed(self) -> float:
        """How long something was communicated and nothing computed."""
        return covered([*self.kernels, *self.messages]) - covered(self.kernels)


def covered(intervals: Iterable[Interval]) -> float:
    """How long at least one of the intervals is."""
    total, until = 0.0, float("-inf")
    for start, end in sorted(intervals):
        total += max(0.0, end - max(start, until))
        until = max(until, end)
    return total
