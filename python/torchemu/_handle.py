"""Who lets go of what the Go core made."""

from __future__ import annotations

from torchemu._binding import go


class Handle:
    """Something of the Go core's: a work, an event, a stream. It is released with the last reference to this.

    Attributes:
        number: what the core's functions take.
    """

    __slots__ = ("number",)

    def __init__(self, number: int) -> None:
        self.number = number

    def __del__(self) -> None:
        go.Release(self.number)
