"""The state of a rank for recording."""

from __future__ import annotations

from torchemu.runtime.rank_local import RankLocal


class State:
    """One rank's.

    Attributes:
        recorded: how many nodes it has recorded.
    """

    def __init__(self) -> None:
        self.recorded = 0


_STATE: RankLocal[State] = RankLocal(State)


def current() -> State:
    """Returns the running rank's."""
    return _STATE.get()
