"""torch.distributed.checkpoint.api: what is raised when a checkpoint cannot be saved or loaded."""

from __future__ import annotations

import traceback

__all__ = ["CheckpointException"]

Failure = tuple[BaseException, "traceback.StackSummary | None"]


class CheckpointException(BaseException):
    """Ranks have failed. All ranks raise it, those that have not failed too.

    Args:
        msg: what was being done.
        failures: by rank, the exception and where it was raised.
    """

    def __init__(self, msg: str, failures: dict[int, Failure]) -> None:
        super().__init__(msg, failures)
        self._failures = failures

    @property
    def failures(self) -> dict[int, Failure]:
        """By rank, the exception and where it was raised."""
        return self._failures

    def __str__(self) -> str:
        text = f"CheckpointException ranks:{self._failures.keys()}\n"
        for rank, (error, trace) in self._failures.items():
            text += f"Traceback (most recent call last): (RANK {rank})\n"
            text += "".join(trace.format()) if trace is not None else ""
            text += "".join(traceback.format_exception_only(error))
        return text
