"""The exceptions that are torchemu's own. The others are Python's, of the type PyTorch raises for the same misuse."""

from __future__ import annotations


class DeadlockError(RuntimeError):
    """No rank can run and no operation is in progress: what would be a hang on a real cluster."""


class MismatchError(RuntimeError):
    """Ranks of a process group met in collectives that do not fit together."""


class InternalError(RuntimeError):
    """A defect in torchemu itself: please report it, with the text, which holds the Go stack."""
