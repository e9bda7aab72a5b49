"""Work: an operation that a rank has issued and may wait for."""

from __future__ import annotations

from typing import Any

from torchemu import _runtime
from torchemu._binding import go


class Work:
    """A collective that a rank has issued."""

    def __init__(self, handle: int) -> None:
        self._handle = handle

    def __del__(self) -> None:
        go.Release(self._handle)

    def wait(self, timeout: Any = None) -> bool:
        """Waits until this rank's part has ended; returns True."""
        _runtime.current().wait(self._handle)
        return True

    def is_completed(self) -> bool:
        """Whether this rank's part has ended by the present simulated time."""
        return go.IsDone(self._handle)
