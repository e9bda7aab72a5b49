"""Estimates of how long collectives would take."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from torchemu import runtime
from torchemu.bridge.binding import go
from torchemu.bridge.calls import Call, Side, as_ints
from torchemu.c10d.checks import refuse_shards
from torchemu.c10d.group import Group
from torchemu.c10d.groups import resolved
from torchemu.c10d.hooks import set_estimator
from torchemu.runtime.waiting import MICROSECOND


class TimeEstimator:
    """An estimator adds up what is called in a block of _time_estimator.

    Attributes:
        estimated_time: of all that was called, one after the other, in microseconds; None before the block ends.
    """

    def __init__(self) -> None:
        self.estimated_time: float | None = None
        self._total = 0

    def collective(self, group: Group, call: Call, out: Side, given: Side) -> None:
        """Adds a collective, simulated on a fabric of its own."""
        rank = runtime.current().rank
        self._total += go.Estimate(group.handle, rank, call.number, as_ints(out), as_ints(given))

    def message(self, group: Group, sending: bool, peer: int, nbytes: int) -> None:
        """Adds a message. One from anybody is taken to come from the next rank."""
        me = group.rank()
        other = peer if peer >= 0 else (me + 1) % group.size()
        ends = (me, other) if sending else (other, me)
        self._total += go.EstimateMessage(group.handle, *ends, nbytes)

    def end(self) -> None:
        """Notes the sum."""
        self.estimated_time = self._total / MICROSECOND


@contextlib.contextmanager
def _time_estimator(group: Group | None = None, device: Any = None) -> Iterator[TimeEstimator]:
    """Works out how long the collectives and messages of its block would take on a fabric that has nothing else to do,
    each begun by all ranks at once. They are not issued, so one rank alone may do this; tensors stay as they are.

    Args:
        group: whose collectives; None is the default group.
        device: means nothing here.

    Raises:
        NotImplementedError: the group is not on the fabric.
    """
    ranks = resolved(group)
    refuse_shards(ranks, "_time_estimator")
    if ranks.delegate is not None:
        raise NotImplementedError(
            f"collective time estimator is not supported in the current version of backend {ranks.backend}"
        )
    estimator = TimeEstimator()
    set_estimator(ranks, estimator)
    try:
        yield estimator
    finally:
        set_estimator(ranks, None)
    estimator.end()
