"""Spawning ranks."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from torchemu import _runtime
from torchemu.multiprocessing._errors import (
    ProcessException,
    ProcessExitedException,
    ProcessRaisedException,
    error_of,
)
from torchemu.multiprocessing._ranks import RankProcess, Ranks, tasks_of

__all__ = [
    "ProcessContext",
    "ProcessException",
    "ProcessExitedException",
    "ProcessRaisedException",
    "SpawnContext",
    "spawn",
    "start_processes",
]


def spawn(
    fn: Callable[..., Any],
    args: tuple[Any, ...] = (),
    nprocs: int = 1,
    join: bool = True,
    daemon: bool = False,
    start_method: str = "spawn",
) -> ProcessContext | None:
    """Runs ``fn(rank, *args)`` on ranks 0 to nprocs-1 and returns when all have ended.

    Ranks are cooperative: one runs until it waits for something, then another does. When a rank raises, the others
    are unwound where they wait (their ``finally`` blocks run).

    Args:
        fn, args: what to call, with the rank before the arguments.
        nprocs: how many ranks.
        join: false returns a ProcessContext at once; the ranks run whenever this program waits, and to their end when
            it calls join, or ends.
        daemon, start_method: mean nothing here.

    Raises:
        SpawnException: ranks failed; it carries each with its traceback. A SpawnExitException where the first of them
            called ``sys.exit``.
        ValueError: nprocs is not positive, or the topology has fewer SIPs.
    """
    if start_method != "spawn":
        warnings.warn(
            f"This method only supports start_method=spawn (got: {start_method}).\nTo use a different start_method "
            "use:\n\t\t torch.multiprocessing.start_processes(...)",
            FutureWarning,
            stacklevel=2,
        )
    return start_processes(fn, args, nprocs, join, daemon)


def start_processes(
    fn: Callable[..., Any],
    args: tuple[Any, ...] = (),
    nprocs: int = 1,
    join: bool = True,
    daemon: bool = False,
    start_method: str = "spawn",
) -> ProcessContext | None:
    """As spawn: however processes would be started, ranks are tasks."""
    if not callable(fn):
        raise TypeError(f"spawn needs a function to call with each rank, not {fn!r}")
    if not isinstance(nprocs, int) or isinstance(nprocs, bool):
        raise TypeError(f"nprocs must be an integer, not {nprocs!r}")
    parent = _runtime.current()
    tasks = tasks_of(parent, fn, tuple(args), nprocs)
    context = ProcessContext(Ranks(parent, lambda: tasks), nprocs)
    if join:
        context.join()
        return None
    context._ranks.leave_running()
    return context


class ProcessContext:
    """The ranks of a spawn that was not joined.

    Attributes:
        processes: one for each rank.
        sentinels, error_files: as many, but of no use: there is nothing that the operating system could wait for.
    """

    def __init__(self, ranks: Ranks, nprocs: int) -> None:
        self._ranks = ranks
        ranks.processes = [RankProcess(ranks, rank, f"SpawnProcess-{rank + 1}") for rank in range(nprocs)]
        self.processes = ranks.processes
        self.sentinels = list(range(nprocs))
        self.error_files: list[str | None] = [None] * nprocs

    def pids(self) -> list[int | None]:
        """The ranks, as numbers of processes."""
        return [process.pid for process in self.processes]

    def join(self, timeout: float | None = None, grace_period: float | None = None) -> bool:
        """Waits until all ranks have ended, or simulated time has passed the timeout, in seconds; tells which.

        Raises:
            as spawn does.
        """
        self._ranks.wait(timeout)
        if not self._ranks.ended:
            return False
        tasks = self._ranks.begun()
        if tasks.failures:
            error = error_of(tasks.failures, tasks.exit_codes)
            raise error from error.errors[0].exception
        return True


class SpawnContext(ProcessContext):
    """Its name in older programs."""
