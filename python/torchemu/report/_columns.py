"""Exposed communication: a column for each rank, of how its device spent the time."""

from __future__ import annotations

from collections.abc import Sequence

from torchemu.report import _units as units
from torchemu.report._analysis import Shares
from torchemu.report._svg import element, picture, tip

WIDTH, HEIGHT, LEFT, TOP, BOTTOM = 1180.0, 210.0, 46.0, 8.0, 24.0
_NARROW = 4.0  # columns that are as narrow touch: gaps of less than a pixel would only make them pale
_PARTS = ("compute", "copy", "transfer", "waiting")  # from below


def columns(shares: Sequence[Shares], duration: float) -> str:
    """The drawing. What is above a column is idle; hatched is communication that computing hides."""
    bottom = HEIGHT - BOTTOM
    step = (WIDTH - LEFT) / max(len(shares), 1)
    width = min(max(step * 0.72, step - 8), 64.0) if step >= _NARROW else step
    parts = [*_scale(bottom)]
    for i, s in enumerate(shares):
        left = LEFT + step * i + (step - width) / 2
        parts.append(_column(s, duration, left, width, bottom))
        if i % _every(step) == 0:
            parts.append(element("text", str(s.rank), x=left + width / 2, y=HEIGHT - 7, class_="tick"))
    parts.append(element("text", "rank", x=LEFT - 8, y=HEIGHT - 7, class_="label"))
    return picture(WIDTH, HEIGHT, parts, "columns")


def _every(step: float) -> int:
    return next(n for n in (1, 2, 4, 8, 16, 64, 256, 1 << 30) if n * step >= 22)


def _scale(bottom: float) -> list[str]:
    parts = []
    for percent in (0, 25, 50, 75, 100):
        y = bottom - (bottom - TOP) * percent / 100
        parts.append(element("line", x1=LEFT, x2=WIDTH, y1=y, y2=y, class_="grid"))
        parts.append(element("text", f"{percent} %", x=LEFT - 8, y=y + 4, class_="label"))
    return parts


def _column(s: Shares, duration: float, left: float, width: float, bottom: float) -> str:
    said = (
        f"rank {s.rank}: compute {units.time(s.compute)}, copies {units.time(s.copy)}, communication "
        f"{units.time(s.communication)}, of it exposed {units.time(s.exposed)}: transfer {units.time(s.transfer)} and "
        f"waiting for other ranks {units.time(s.waiting)}; idle {units.time(s.idle)}"
    )
    per = (bottom - TOP) / max(duration, 1e-9)
    parts, y = [], bottom
    for part in _PARTS:
        height = getattr(s, part) * per
        y -= height
        parts.append(element("rect", x=left, y=y, width=width, height=height, class_=f"part-{part}"))
    hidden = s.overlapped * per
    at = bottom - (s.compute + s.copy) * per
    parts.append(element("rect", x=left, y=at, width=width, height=hidden, class_="part-overlapped"))
    return element("g", tip(said) + "".join(parts))
