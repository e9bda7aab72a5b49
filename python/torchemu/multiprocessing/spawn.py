"""Spawning ranks."""

from __future__ import annotations

import pickle
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

from torchemu import runtime
from torchemu.multiprocessing._errors import (
    ProcessException,
    ProcessExitedException,
    ProcessRaisedException,
    error_of,
)
from torchemu.multiprocessing._holders import note_start
from torchemu.multiprocessing._ranks import RankProcess, Ranks, birth_of, tasks_of
from torchemu.multiprocessing._shared import limit
from torchemu.multiprocessing._start import get_context
from torchemu.runtime.tasks import Failure

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
    are unwound where they wait (their ``finally`` blocks run). A KeyboardInterrupt that a rank raises itself ends it
    well.

    Args:
        fn, args: what to call, with the rank before the arguments.
        nprocs: how many ranks; none are as good as ended.
        join: false returns a ProcessContext at once; the ranks run whenever this program waits, and to their end when
            it calls join, or ends.
        daemon, start_method: mean nothing here.

    Raises:
        SpawnException: ranks failed; it carries each with its traceback. A SpawnExitException where the first of them
            called ``sys.exit`` or was ended by a signal.
        TypeError: nprocs is no integer.
        ValueError: the topology has fewer SIPs.
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
    """Acts as spawn, for any way of starting processes. Those that are forked find the parent's values in the variables
    of the main program."""
    get_context(start_method)  # says whether there is such a way
    return _started(fn, args, nprocs, join, daemon, start_method)


def start_programs(fn: Callable[..., Any], args: tuple[Any, ...], nprocs: int) -> None:
    """Acts as spawn, of processes that run another program: they do not load the main one first."""
    _started(fn, args, nprocs, True, False, "program")


def _started(
    fn: Callable[..., Any], args: tuple[Any, ...], nprocs: int, join: bool, daemon: bool, start_method: str
) -> ProcessContext | None:
    if not isinstance(nprocs, int):
        raise TypeError(f"nprocs must be an integer, not {nprocs!r}")
    parent = runtime.current()
    if nprocs < 1:
        return None if join else ProcessContext(Ranks(parent, lambda: tasks_of(parent, (fn,), 1, list)), 0, daemon)
    tasks = tasks_of(parent, (fn, *args), nprocs, lambda: [birth_of(parent, start_method)] * nprocs)
    context = ProcessContext(Ranks(parent, lambda: tasks), nprocs, daemon)
    if not join:
        context.error_files = [_free_name() for _ in range(nprocs)]
        context._ranks.leave_running()
        return context
    context._ranks.advance()
    context.join()
    return None


class ProcessContext:
    """The ranks of a spawn that was not joined.

    Attributes:
        processes: one for each rank.
        sentinels: the ranks that join has not yet seen the end of, by their processes' numbers.
        error_files: a name for each rank. Of ranks that raised there is such a file once join has seen it: the
            traceback, pickled.
    """

    def __init__(self, ranks: Ranks, nprocs: int, daemon: bool = False) -> None:
        self._ranks = ranks
        ranks.processes = [RankProcess(ranks, rank, f"SpawnProcess-{rank + 1}", daemon) for rank in range(nprocs)]
        self.processes = ranks.processes
        for process in ranks.processes:
            note_start(process)
        self.sentinels = {process.pid: rank for rank, process in enumerate(ranks.processes)}
        self.error_files: list[str] = []

    def pids(self) -> list[int | None]:
        """The numbers of the ranks' processes."""
        return [process.pid for process in self.processes]

    def join(self, timeout: float | None = None, grace_period: float | None = None) -> bool:
        """Waits until a rank has ended that had not when join was last called, or simulated time has passed the
        timeout. Tells whether all have ended; so programs call it in a loop.

        Args:
            timeout: in seconds.
            grace_period: seconds of simulated time that the others may go on after a rank has failed.

        Raises:
            as spawn does, once.
        """
        if not self.sentinels:
            return True
        tasks = self._ranks.begun()
        tasks.grace = limit(grace_period)
        self._ranks.wait(timeout, lambda: tasks.live < len(self.sentinels))
        if tasks.failures and tasks.ended:
            self.sentinels.clear()
            self._write(tasks.failures)
            error = error_of(tasks.failures, tasks.exit_codes)
            raise error from error.errors[0].exception
        self.sentinels = {pid: rank for pid, rank in self.sentinels.items() if tasks.exit_codes[rank] is None}
        return not self.sentinels

    def _write(self, failures: list[Failure]) -> None:
        """Writes the files of ranks that raised, for a program that can know their names."""
        for failure in failures:
            if self.error_files and not isinstance(failure.exception, SystemExit):
                Path(self.error_files[failure.rank]).write_bytes(pickle.dumps(failure.traceback))


def _free_name() -> str:
    """Of a file that does not exist."""
    with tempfile.NamedTemporaryFile(prefix="pytorch-errorfile-", suffix=".pickle") as file:
        return file.name


class SpawnContext(ProcessContext):
    """Its name in older programs."""
