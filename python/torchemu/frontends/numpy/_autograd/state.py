"""What a rank has of its own for recording and for its backward passes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from torchemu.runtime.rank_local import RankLocal
from torchemu.runtime.thread_state import Kept, keep


class Anomaly(NamedTuple):
    """Whether anomalies of backward passes are detected, and whether NaN is one; see torch.autograd.anomaly_mode."""

    on: bool
    check_nan: bool


class State:
    """One rank's.

    Attributes:
        recorded: how many nodes it has recorded.
        saved_hooks: what packs and unpacks the tensors that recorded functions keep, the innermost last.
        no_saved_hooks: why there may be none, for each block that says so.
        anomaly: whether anomalies are detected.
        passes: for each backward pass that it is in, the innermost last, what is to be called at its end.
    """

    def __init__(self) -> None:
        self.recorded = 0
        self.saved_hooks: list[tuple[Callable[[Any], Any], Callable[[Any], Any]]] = []
        self.no_saved_hooks: list[str] = []
        self.anomaly = Anomaly(False, True)
        self.passes: list[list[Callable[[], Any]]] = []

    def of_thread(self) -> OfThread:
        """What of it is a thread's."""
        return self.saved_hooks, self.no_saved_hooks, self.passes

    def set_of_thread(self, own: OfThread) -> None:
        """Puts that of a thread in place."""
        self.saved_hooks, self.no_saved_hooks, self.passes = own


OfThread = tuple[list[tuple[Callable[[Any], Any], Callable[[Any], Any]]], list[str], list[list[Callable[[], Any]]]]
"""Of State, what each thread of a rank has for itself: saved_hooks, no_saved_hooks and passes."""


_STATE: RankLocal[State] = RankLocal(State)

keep(
    Kept(
        save=lambda: current().of_thread(),
        restore=lambda own: current().set_of_thread(own),
        first=lambda: State().of_thread(),
    )
)


def current() -> State:
    """The running rank's."""
    return _STATE.get()
