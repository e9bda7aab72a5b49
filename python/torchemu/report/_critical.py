"""The critical path of a run: the chain of operations, of which each waited for the one before, up to the last end."""

from __future__ import annotations

import bisect
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from torchemu.report._analysis import meetings
from torchemu.report._load import Bar, Rank, Run

_ROUNDING = 2e-3  # what whole nanoseconds make of times that meet, in microseconds


@dataclass(frozen=True)
class Piece:
    """A part of the path, in microseconds.

    Attributes:
        kind: a Bar's, or idle: nothing that was recorded explains the time.
        bar: what was done; None for idle.
    """

    rank: int
    kind: str
    name: str
    start: float
    end: float
    bar: Bar | None = None


@dataclass(frozen=True)
class Part:
    """All pieces of a kind and name."""

    kind: str
    name: str
    count: int
    time: float


class _Timeline:
    """The bars of a rank, in the order of ends."""

    def __init__(self, rank: Rank) -> None:
        self.number = rank.number
        self._device = sorted(rank.bars, key=lambda b: (b.end, b.start))
        self._device_ends = [b.end for b in self._device]
        self._host = sorted(rank.host, key=lambda b: (b.end, b.start))
        self._host_ends = [b.end for b in self._host]
        self._calls = {b.args.get("External id"): b for b in rank.host if b.kind == "host"}

    def ended_at(self, time: float, beside: Bar | None = None) -> Bar | None:
        """Returns a bar of the device that ended then; on the row of another one if there is such, else the longest."""
        low = bisect.bisect_left(self._device_ends, time - _ROUNDING)
        high = bisect.bisect_right(self._device_ends, time + _ROUNDING)
        found = [b for b in self._device[low:high] if b is not beside and b.start < time - _ROUNDING]
        track = beside.track if beside is not None else None
        return max(found, key=lambda b: (b.track == track, b.end - b.start), default=None)

    def call_of(self, bar: Bar) -> Bar | None:
        return self._calls.get(bar.args.get("External id"))

    def before(self, time: float) -> Bar | None:
        """Returns the host's last bar before a time."""
        at = bisect.bisect_right(self._host_ends, time + _ROUNDING) - 1
        while at >= 0 and self._host[at].start >= time - _ROUNDING / 4:
            at -= 1
        return self._host[at] if at >= 0 else None


class _Walk:
    """Goes back from the end of a run."""

    def __init__(self, run: Run) -> None:
        self._meetings = meetings(run)
        self._ranks = {rank.number: _Timeline(rank) for rank in run.ranks}
        self.pieces: list[Piece] = []

    def go(self, rank: int, bar: Bar | None) -> None:
        while bar is not None:
            rank, bar, start = self._began(rank, bar)
            following = self._ranks[rank].ended_at(start, bar)
            if following is None:
                following = self._host(rank, bar, start)
            bar = following

    def _began(self, rank: int, bar: Bar) -> tuple[int, Bar, float]:
        """Adds a bar; returns what of it was ready last, and when."""
        meeting = self._meetings.get(id(bar))
        start = meeting.ready if meeting else bar.start
        self._add(rank, bar.kind, bar.name, start, bar)
        if meeting and start > bar.start + _ROUNDING / 4:
            rank, bar = next((number, late) for number, late in meeting.parts if late.start == start)
        return rank, bar, start

    def _host(self, rank: int, bar: Bar, time: float) -> Bar | None:
        """Follows the rank's host back to a wait; returns the bar that ended it, or None at the beginning."""
        host = self._ranks[rank]
        item = host.call_of(bar) or host.before(time)
        while item is not None:
            if item.kind == "wait" and (cause := host.ended_at(item.end)) is not None:
                self._gap(rank, cause.end)
                return cause
            self._gap(rank, item.end)
            self._add(rank, "host", item.name, item.start, item)
            item = host.before(item.start)
        return None

    def _gap(self, rank: int, time: float) -> None:
        if self.pieces and time < self.pieces[-1].start - _ROUNDING:
            self.pieces.append(Piece(rank, "idle", "nothing recorded", time, self.pieces[-1].start))

    def _add(self, rank: int, kind: str, name: str, start: float, bar: Bar) -> None:
        end = min(bar.end, self.pieces[-1].start) if self.pieces else bar.end
        if start < end:
            self.pieces.append(Piece(rank, kind, name, start, end, bar))


def critical_path(run: Run) -> list[Piece]:
    """Returns the pieces, in the order of time. They do not overlap; what is between two is less than a rounding."""
    ends = [(bar.end, -rank.number, i) for rank in run.ranks for i, bar in enumerate(rank.bars)]
    if not ends:
        return []
    _, number, i = max(ends)
    walk = _Walk(run)
    walk.go(-number, next(rank for rank in run.ranks if rank.number == -number).bars[i])
    return walk.pieces[::-1]


def parts(path: Sequence[Piece]) -> list[Part]:
    """Sums over the pieces of each kind and name, the longest first."""
    found: dict[tuple[str, str], list[float]] = defaultdict(list)
    for piece in path:
        found[piece.kind, piece.name].append(piece.end - piece.start)
    sums = [Part(kind, name, len(times), sum(times)) for (kind, name), times in found.items()]
    return sorted(sums, key=lambda p: (-p.time, p.kind, p.name))
