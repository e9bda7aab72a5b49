"""torch.multiprocessing: spawn, with cooperative ranks instead of processes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torchemu import _interrupts, _runtime
from torchemu._tasks import Failure, Tasks
from torchemu.errors import DeadlockError

_SHOWN = 8  # ranks whose tracebacks a message spells out


class ProcessException(Exception):
    """What went wrong in a spawned rank.

    Attributes:
        msg: the text.
        error_index: the rank.
        error_pid: its process id; ranks here are tasks of one process, so it is the rank too.
    """

    def __init__(self, msg: str, error_index: int, error_pid: int) -> None:
        super().__init__(msg)
        self.msg, self.error_index, self.error_pid = msg, error_index, error_pid


class ProcessRaisedException(ProcessException):
    """A spawned rank raised an exception."""


class SpawnException(ProcessRaisedException):
    """The ranks of a spawn that failed by themselves, not those that were unwound because of them.

    Attributes:
        errors: one :class:`Failure` a rank (``rank``, ``exception``, ``traceback``, ``time_ps``), the earliest in
            simulated time first, then the lowest rank.
    """

    def __init__(self, errors: list[Failure]) -> None:
        self.errors = sorted(errors, key=lambda f: (f.time_ps, f.rank))
        first = self.errors[0].rank
        super().__init__(_message(self.errors), first, first)


def _message(failures: list[Failure]) -> str:
    text = ""
    reported: set[str] = set()
    for f in failures[:_SHOWN]:
        text += f"\n\n-- Process {f.rank} terminated with the following error:\n{_shortened(f, reported)}"
    if len(failures) > _SHOWN:
        text += f"\n\n… and {len(failures) - _SHOWN} more processes failed by themselves; see .errors"
    return text


def _shortened(failure: Failure, reported: set[str]) -> str:
    """The traceback, without the report of a deadlock when another rank's has it already."""
    if not isinstance(failure.exception, DeadlockError):
        return failure.traceback
    report = str(failure.exception)
    if report not in reported:
        reported.add(report)
        return failure.traceback
    return failure.traceback.replace(report, "the deadlock that is reported above")


def spawn(
    fn: Callable[..., Any],
    args: tuple[Any, ...] = (),
    nprocs: int = 1,
    join: bool = True,
    daemon: bool = False,
    start_method: str = "spawn",
) -> None:
    """Runs ``fn(rank, *args)`` on ranks 0 to nprocs-1 and returns when all have ended.

    Ranks are cooperative: one runs until it waits for something, then another does. When a rank raises, the others
    are unwound where they wait (their ``finally`` blocks run).

    Raises:
        SpawnException: ranks failed; it carries each with its traceback.
        ValueError: nprocs is not positive, or the topology has fewer SIPs.
        NotImplementedError: join=False.
    """
    if not join:
        raise NotImplementedError("spawn(join=False) is not supported: ranks run inside this call")
    if not callable(fn):
        raise TypeError(f"spawn needs a function to call with each rank, not {fn!r}")
    if not isinstance(nprocs, int) or isinstance(nprocs, bool):
        raise TypeError(f"nprocs must be an integer, not {nprocs!r}")
    parent = _runtime.current()
    if parent.tasks is not None:
        raise RuntimeError("spawn inside a spawned rank is not supported: a World has one rank a SIP, all in use")
    tasks = Tasks(parent, fn, tuple(args), nprocs)
    with _interrupts.ends_the_process():
        tasks.run()
    if tasks.interrupt is not None:
        raise tasks.interrupt
    if tasks.failures:
        error = SpawnException(tasks.failures)
        raise error from error.errors[0].exception
