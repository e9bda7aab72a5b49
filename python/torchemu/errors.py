"""The exceptions that are torchemu's own. The others are Python's, of the type PyTorch raises for the same misuse."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


class CommandError(Exception):
    """A command cannot do what it was told to. The text says all that there is to say."""


class DeadlockError(RuntimeError):
    """No rank can run and no operation is in progress: what would be a hang on a real cluster.

    Attributes:
        report: which ranks wait, and for what.
        cause: what is probably wrong; "" where nothing is known.
        waits: what blocked ranks wait for: dicts of "ranks", "on", a text, and "needs", the ranks that would have to do
            something; threads have a "thread", too. Empty where nobody knows.
    """

    waits: Sequence[dict[str, Any]] = ()

    def __init__(self, report: str = "", cause: str = "") -> None:
        super().__init__(f"{report}\nlikely cause: {cause}" if cause else report)
        self.report, self.cause = report, cause


class MismatchError(RuntimeError):
    """Ranks of a process group met in collectives that do not fit together. On ranks whose debug level is DETAIL the
    text begins as PyTorch's does there."""


class RaceError(RuntimeError):
    """Device programs accessed memory in no order: what the checker found, with both accesses and what is missing."""


class KernelError(RuntimeError):
    """A device program of this rank ended with an exception."""


class InternalError(RuntimeError):
    """A defect in torchemu itself: please report it, with the text, which holds the Go stack."""


class RankKilledError(BaseException):
    """Raised inside a rank that a fault has killed. It is nobody's failure: what other ranks make of it is."""


class DistError(RuntimeError):
    """An error of torch.distributed below Python: the base of the four that follow."""


class DistBackendError(DistError):
    """An operation between ranks failed: a rank or a link is gone."""


class DistNetworkError(DistError):
    """A store could not be reached."""


class DistStoreError(DistError):
    """A store did not answer in time."""


class QueueEmptyError(DistStoreError):
    """A queue of a store has nothing to pop, and the caller did not want to wait."""


class OutOfMemoryError(RuntimeError, MemoryError):
    """A device's memory has no room for a tensor."""


class AcceleratorError(RuntimeError, ValueError):
    """There is no such device: a RuntimeError, as PyTorch's is, and as a wrong argument a ValueError."""


class HostMemoryError(RuntimeError, MemoryError):
    """The host has no room for a tensor: a RuntimeError, as PyTorch's is."""
