"""Schedules of the steps that are profiled."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from enum import Enum


class ProfilerAction(Enum):
    """The action of a profile in a step."""

    NONE = 0
    WARMUP = 1
    RECORD = 2
    RECORD_AND_SAVE = 3


def schedule(
    *, wait: int, warmup: int, active: int, repeat: int = 0, skip_first: int = 0, skip_first_wait: int = 0
) -> Callable[[int], ProfilerAction]:
    """Cycles of steps: of each the first ones are not recorded, the ``active`` last ones are.

    Args:
        wait: steps of a cycle in which nothing is done.
        warmup: steps after these in which nothing is recorded either.
        active: steps after these which are recorded.
        repeat: how many cycles; 0 for as many as the program has.
        skip_first: steps before the first cycle.
        skip_first_wait: if not 0, the first cycle has no ``wait`` steps.
    """
    if min(wait, warmup, active - 1, repeat, skip_first) < 0:
        raise AssertionError("Invalid profiler schedule arguments")
    if warmup == 0:
        warnings.warn("Profiler won't be using warmup, this can skew profiler results", stacklevel=2)
    cycle = wait + warmup + active

    def action(step: int) -> ProfilerAction:
        if step < 0:
            raise AssertionError(f"there is no step {step}")
        if step < skip_first:
            return ProfilerAction.NONE
        step -= skip_first - (wait if skip_first_wait else 0)
        if repeat and step >= repeat * cycle:
            return ProfilerAction.NONE
        place = step % cycle
        if place < wait:
            return ProfilerAction.NONE
        if place < wait + warmup:
            return ProfilerAction.WARMUP
        return ProfilerAction.RECORD_AND_SAVE if place == cycle - 1 else ProfilerAction.RECORD

    return action


def always(_: int) -> ProfilerAction:
    """The schedule of a profile that has none."""
    return ProfilerAction.RECORD
