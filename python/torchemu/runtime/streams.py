"""Methods of streams and events that every front end's classes of them have."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torchemu.bridge.binding import go
from torchemu.bridge.handles import Handle

_PS_PER_MS = 1e9


class StreamMethods:
    """Waits of a stream, by way of its events. A class of streams adds how they are recorded."""

    __slots__ = ()

    record_event: Callable[..., Any]
    priority = 0

    @staticmethod
    def priority_range() -> tuple[int, int]:
        """Returns the least and the greatest priority: streams share the device evenly."""
        return 0, 0

    def wait_event(self, event: Any) -> None:
        """Makes operations that are put on this stream from now on start after an event. The host goes on."""
        event.wait(self)

    def wait_stream(self, stream: Any) -> None:
        """Makes operations that are put on this stream from now on start after all that is on another one now."""
        self.wait_event(stream.record_event())

    def query(self) -> bool:
        """Reports whether all on the stream has ended by the present simulated time. Asking in vain takes time, in
        which other ranks run."""
        return bool(self.record_event().query())

    def synchronize(self) -> None:
        """Blocks the host until all has ended that is on the stream."""
        self.record_event().synchronize()


class EventMethods:
    """Answers of an event. A class of events has a handle once it is recorded."""

    __slots__ = ()

    enable_timing: bool
    _handle: Handle | None

    @property
    def event_id(self) -> int:
        """The number of the place; 0 before it is recorded."""
        return 0 if self._handle is None else self._handle.number

    def elapsed_time(self, end_event: Any) -> float:
        """Returns the simulated time from this event to another one, in milliseconds.

        Raises:
            ValueError: one of them has no timing, or was not recorded.
            RuntimeError: one of them is not over.
        """
        if not (self.enable_timing and end_event.enable_timing):
            raise ValueError("Both events must be created with argument 'enable_timing=True'.")
        begin, end = self._handle, end_event._handle
        if begin is None or end is None:
            raise ValueError("Both events must be recorded before calculating elapsed time.")
        if not (go.IsDone(begin.number) and go.IsDone(end.number)):
            raise RuntimeError("Both events must be completed before calculating elapsed time.")
        return float((go.EventTime(end.number) - go.EventTime(begin.number)) / _PS_PER_MS)
