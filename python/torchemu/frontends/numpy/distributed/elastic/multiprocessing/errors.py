"""torch.distributed.elastic.multiprocessing.errors: what torchrun's workers say of their failures."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ParamSpec, TypeVar

from torchemu.multiprocessing._errors import signal_name

__all__ = ["ChildFailedError", "ProcessFailure", "record"]

P = ParamSpec("P")
R = TypeVar("R")

_NOTHING = "To enable traceback see: https://pytorch.org/docs/stable/elastic/errors.html"


def record(fn: Callable[P, R], error_handler: object = None) -> Callable[P, R]:
    """The function as it is: ``torchemu run`` has the exception itself, and needs no file to be told of it."""
    del error_handler
    return fn


@dataclass
class ProcessFailure:
    """A worker that has failed.

    Attributes:
        local_rank, pid: which one.
        exitcode: its status; minus the number of the signal that has ended it.
        error_file: "<N/A>": workers are tasks of one process, and write none.
        message: its traceback, or how it has ended.
        timestamp: in seconds of simulated time.
    """

    local_rank: int
    pid: int
    exitcode: int
    error_file: str
    message: str = ""
    timestamp: float = 0.0

    def __post_init__(self) -> None:
        if not self.message:
            by_signal = f"Signal {-self.exitcode} ({self.signal_name()}) received by PID {self.pid}"
            self.message = by_signal if self.exitcode < 0 else _NOTHING

    def signal_name(self) -> str:
        """SIGTERM, …; "<N/A>" where it was none."""
        return signal_name(-self.exitcode) if self.exitcode < 0 else "<N/A>"

    def timestamp_isoformat(self) -> str:
        """The time as it is printed, in microseconds of simulated time."""
        return f"{self.timestamp * 1e6:.3f} us"


class ChildFailedError(Exception):
    """Workers have failed.

    Args:
        name: of what they ran.
        failures: at least one, by rank.
    """

    def __init__(self, name: str, failures: dict[int, ProcessFailure]) -> None:
        assert failures
        self.name, self.failures = name, failures
        super().__init__(self.format_msg())

    def get_first_failure(self) -> tuple[int, ProcessFailure]:
        """The earliest one, and its rank."""
        rank = min(self.failures, key=lambda each: self.failures[each].timestamp)
        return rank, self.failures[rank]

    def format_msg(self, boarder_delim: str = "=", section_delim: str = "-") -> str:
        """The table that torchrun prints."""
        first = self.get_first_failure()[0]
        texts = {rank: _described(i, rank, failed) for i, (rank, failed) in enumerate(self.failures.items())}
        others = [text for rank, text in texts.items() if rank != first] or ["  <NO_OTHER_FAILURES>"]
        title = f"{self.name} FAILED"
        lines = [title, *(line for text in texts.values() for line in text.splitlines())]
        width = min(max(map(len, lines)), 60)
        border, section = boarder_delim * width, section_delim * width
        head = ["", border, title, section, "Failures:", *others, section]
        return "\n".join([*head, "Root Cause (first observed failure):", texts[first], border])


def _described(number: int, rank: int, failed: ProcessFailure) -> str:
    message = failed.message.replace("\n", "\n  ")
    return "\n".join(
        [
            f"[{number}]:",
            f"  time      : {failed.timestamp_isoformat()}",
            f"  rank      : {rank} (local_rank: {failed.local_rank})",
            f"  exitcode  : {failed.exitcode} (pid: {failed.pid})",
            f"  error_file: {failed.error_file}",
            f"  traceback : {message}",
        ]
    )
