"""NCCL's watchdog: it ends the process of a rank where an operation has lasted longer than its group allows."""

from __future__ import annotations

import os
import signal

from torchemu import errors, runtime
from torchemu.bridge import binding
from torchemu.runtime.tasks import Signalled

_YES = ("1", "t", "true", "y", "yes")
_NO = ("0", "f", "false", "n", "no")
_NO_ABORT = ("0", "2")  # handling no errors, and cleaning up only


class Aborted(Signalled):
    """The end of a rank by its watchdog, as by SIGABRT. No program catches it as an Exception.

    Attributes:
        reason: the error that the watchdog has found.
    """

    def __init__(self, reason: Exception) -> None:
        super().__init__(signal.SIGABRT)
        self.reason = reason


def _found(text: str) -> BaseException:
    """Returns what to raise where an operation has lasted too long: in a rank that is a process, its end."""
    error, context = errors.DistBackendError(text), runtime.running()
    if context is None or context.tasks is None or context.process is None or not _aborts():
        return error
    return context.tasks.ending(context.rank, Aborted(error))


def blocks_hosts() -> bool:
    """Reports whether the rank's environment makes hosts wait for operations of groups that are made now, and raise
    their errors there.

    Raises:
        RuntimeError: the environment says neither yes nor no.
    """
    said = os.environ.get("TORCH_NCCL_BLOCKING_WAIT", "0").lower()
    if said not in (*_YES, *_NO):
        raise RuntimeError("Invalid value for environment variable: TORCH_NCCL_BLOCKING_WAIT")
    return said in _YES


def _aborts() -> bool:
    """Reports whether the rank's environment leaves it to the watchdog what becomes of errors, as NCCL's backend
    reads it."""
    return not blocks_hosts() and os.environ.get("TORCH_NCCL_ASYNC_ERROR_HANDLING") not in _NO_ABORT


binding.make("WatchdogError", _found)
