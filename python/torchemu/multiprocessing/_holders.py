"""Holders of the ends of pipes: an end is open as long as a process has it that has neither closed it nor ended."""

from __future__ import annotations

from torchemu import runtime
from torchemu.multiprocessing._helper import Closing, Helper, running
from torchemu.multiprocessing._ranks import RankProcess
from torchemu.runtime import footprints
from torchemu.runtime.rank_local import RankLocal

_started: RankLocal[list[RankProcess]] = RankLocal(list)


def note_start(process: RankProcess) -> None:
    """Notes that the running rank, or a process that helps it, has started another."""
    _started.get().append(process)


class Holders:
    """Processes that may hold an end of a pipe: the one that makes it, and those that it and they start afterwards.

    Forked ones get what is open then. Those that load the program anew get what is passed to them, which nobody looks
    for: they count, too, so an end may be taken for open longer than it is on Linux, and never for closed too early.

    Args:
        closed: says who has closed it.
    """

    def __init__(self, closed: Closing) -> None:
        self._closed = closed
        self._maker, self._helper = runtime.current(), running()
        self._before = len(_started.get())
        self._until: RankLocal[int | None] = RankLocal(lambda: None)  # those started after it was closed do not get it
        self._anyone = False

    def close(self) -> None:
        """Notes that the running process has closed it."""
        footprints.use()
        self._closed.set()
        if running() is None:
            self._until.set(len(_started.get()))

    def add_anyone(self) -> None:
        """Notes that any process may come to hold it."""
        self._anyone = True

    def are_left(self) -> bool:
        """Reports whether one holds it."""
        return (
            self._anyone
            or not self._closed.is_by(self._maker, self._helper)
            or self._is_with_children(self._maker, self._before)
        )

    def _is_with_children(self, context: runtime.Context, before: int = 0) -> bool:
        """Reports whether a process holds it that a rank has started, after so many others, or one of its own."""
        children = (_started.of(context) or ())[before : self._until.of(context)]
        return any(self._is_with(process) for process in children)

    def _is_with(self, process: RankProcess) -> bool:
        ranks, context = process.ranks, process.context
        if context is None:
            return True
        helper = ranks if isinstance(ranks, Helper) else None
        if not (_has_left(process) or self._closed.is_by(context, helper)):
            return True
        return helper is None and self._is_with_children(context)


def _has_left(process: RankProcess) -> bool:
    """Reports whether a process has ended, and not of a deadlock, of which who waits for it is a part."""
    ranks, context = process.ranks, process.context
    if ranks is None or ranks.tasks is None or context is None:
        return False
    return ranks.tasks.exit_codes[process._rank] is not None and context.deadlock is None
