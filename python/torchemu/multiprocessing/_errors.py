"""Exceptions for spawned ranks that fail."""

from __future__ import annotations

import signal
from typing import Any

from torchemu.errors import DeadlockError
from torchemu.runtime.tasks import Failure

_SHOWN = 8  # ranks whose tracebacks a message spells out


class ProcessException(Exception):
    """The failure of a spawned rank.

    Attributes:
        msg: the text.
        error_index: the rank.
        pid, error_pid: its process id; ranks here are tasks of one process, and the system knows none of this number.
    """

    def __init__(self, msg: str, error_index: int, error_pid: int) -> None:
        super().__init__(msg)
        self.msg, self.error_index, self.pid, self.error_pid = msg, error_index, error_pid, error_pid

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.msg, self.error_index, self.error_pid)


class ProcessRaisedException(ProcessException):
    """A spawned rank raised an exception."""


class ProcessExitedException(ProcessException):
    """A spawned rank exited.

    Attributes:
        exit_code: with which status; minus the number of the signal that has ended it.
        signal_name: that signal's name; None where it has exited by itself.
    """

    def __init__(
        self, msg: str, error_index: int, error_pid: int, exit_code: int, signal_name: str | None = None
    ) -> None:
        super().__init__(msg, error_index, error_pid)
        self.exit_code, self.signal_name = exit_code, signal_name

    def __reduce__(self) -> tuple[Any, ...]:
        return ProcessExitedException, (
            self.msg,
            self.error_index,
            self.error_pid,
            self.exit_code,
            self.signal_name,
        )


class SpawnException(ProcessRaisedException):
    """The ranks of a spawn that failed by themselves, not those that were unwound because of them.

    Attributes:
        errors: one :class:`Failure` a rank (``rank``, ``exception``, ``traceback``, ``time_ps``), the earliest in
            simulated time first, then the lowest rank.
    """

    __module__ = "torchemu.multiprocessing"  # where programs find it, which is what tracebacks call it by

    def __init__(self, errors: list[Failure]) -> None:
        self.errors = in_order(errors)
        first = self.errors[0]
        ProcessException.__init__(self, _message(self.errors), first.rank, first.pid)

    def __reduce__(self) -> tuple[Any, ...]:
        """Makes a copy what PyTorch raises: the ranks' exceptions stay where they are."""
        return ProcessRaisedException, (self.msg, self.error_index, self.error_pid)


class SpawnExitException(SpawnException, ProcessExitedException):
    """Ranks of a spawn failed, and the first of them by ``sys.exit``, a signal, or what is no Exception."""

    def __init__(self, errors: list[Failure], exit_code: int) -> None:
        super().__init__(errors)
        self.exit_code, self.signal_name = exit_code, None if exit_code > 0 else signal_name(-exit_code)
        how = f"exit code {exit_code}" if self.signal_name is None else f"signal {self.signal_name}"
        self.msg = f"process {self.error_index} terminated with {how}{self.msg}"
        self.args = (self.msg,)

    __reduce__ = ProcessExitedException.__reduce__


def error_of(errors: list[Failure], exit_codes: list[int | None]) -> SpawnException:
    """Returns the exception for a spawn with these failures and exit codes by rank."""
    first = in_order(errors)[0]
    if isinstance(first.exception, Exception):
        return SpawnException(errors)
    return SpawnExitException(errors, int(exit_codes[first.rank] or 1))  # such as SystemExit, with any status


def signal_name(number: int) -> str:
    """SIGTERM, ….

    Args:
        number: of a signal.
    """
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"<Unknown signal {number}>"


def in_order(errors: list[Failure]) -> list[Failure]:
    """The earliest in simulated time first, then the lowest rank."""
    return sorted(errors, key=lambda f: (f.time_ps, f.rank))


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
