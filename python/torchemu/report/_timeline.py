"""The timeline: a row for each rank, with what it computed above what it communicated."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain, count

from torchemu.c10d.ops import KINDS
from torchemu.report import _units as units
from torchemu.report._load import Annotation, Bar, Rank, Run
from torchemu.report._svg import element, escaped, fine, number, picture, tip

WIDTH, LEFT, RIGHT, TOP, BOTTOM = 1180.0, 76.0, 12.0, 22.0, 24.0
_MOST_ROWS = 128
_FINEST = (0.01, 0.03, 0.1, 0.3, 0.7)  # what is narrower, or nearer, is drawn as one: the least of these that gives
_MOST_PIECES = 30_000  # no more bars than so many, which browsers show at once; zooming in shows what is that fine
_THIN = 0.7  # what is narrower has a border, whose width does not depend on the scale
_MOST_LANES = 3  # of communication
_ROUNDING = 1e-5  # what floating point makes of times that meet, in microseconds

COLOURS = {name: name.replace("_", "-") for name in ("compute", "copy", "message", "barrier", *KINDS)}
"""The classes of bars, by what begins the operation's name. Those of collectives are style_sheet()'s."""

_PALETTE = ("#e4572e", "#8e5bd0", "#1b998b", "#d81e82", "#a8471c", "#5a6acf", "#3c8f4f", "#c28b00")
"""Colours of the kinds of collectives, in the order of their table; others go round the circle of hues."""

_GOLDEN_ANGLE = 137.5


def style_sheet() -> str:
    """The colours of bars, as CSS."""
    hues = (f"hsl({_GOLDEN_ANGLE * i % 360:g} 55% 45%)" for i in count())
    variables = "".join(
        f"  --{COLOURS[kind]}: {hue};\n" for kind, hue in zip(KINDS, chain(_PALETTE, hues), strict=False)
    )
    classes = (f".{name} {{ fill: var(--{name}); stroke: var(--{name}); }}\n" for name in (*COLOURS.values(), "other"))
    return f":root {{\n{variables}}}\n{''.join(classes)}"


def colour(bar: Bar) -> str:
    """The class of a bar."""
    return colour_of(bar.name) if bar.kind == "collective" else COLOURS[bar.kind]


def colour_of(collective: str) -> str:
    """The class of a collective."""
    fitting = [name for name in COLOURS if collective.startswith(name)]
    return COLOURS[max(fitting, key=len)] if fitting else "other"


@dataclass
class _Piece:
    """The drawing of one bar."""

    first: Bar
    left: float
    right: float
    count: int = 1


class Timeline:
    """Draws a run.

    Args:
        run: what.
        index: the number of each collective, by which bars of one are found together.
    """

    def __init__(self, run: Run, index: dict[tuple[str, int], int]) -> None:
        self._run, self._index = run, index
        self._ranks = _chosen(run.ranks)
        self._lane = _height(len(self._ranks))
        self._scale = (WIDTH - LEFT - RIGHT) / max(run.duration, 1e-9)
        self._finest = _FINEST[-1]
        self.used: dict[str, None] = {}  # classes of bars

    @property
    def left_out(self) -> int:
        """Ranks that are not drawn."""
        return len(self._run.ranks) - len(self._ranks)

    def svg(self) -> str:
        """The drawing. What the script of the page scales is in an element of its own: it holds no text, which would
        become wider as well."""
        notes, names = self._annotations()
        top = TOP + (16 if notes else 0)
        rows, bars, bottom = self._rows(top)
        width = WIDTH - LEFT - RIGHT
        view = f"{number(LEFT)} 0 {number(width)} {number(bottom)}"
        scaled = element(
            "svg", "".join([*notes, *bars]), class_="scaled", x=LEFT, y=0, width=width, height=bottom, viewBox=view,
            preserveAspectRatio="none", data_duration=repr(self._run.duration),
        )  # fmt: skip
        axis = element("g", "".join(self._axis(top, bottom)), class_="axis", data_top=top - 3, data_bottom=bottom + 3)
        return picture(WIDTH, bottom + BOTTOM, [axis, *rows, scaled, *names], "timeline")

    def _rows(self, top: float) -> tuple[list[str], list[str], float]:
        """The rows' backgrounds and labels; the bars, as many as browsers can show; where the last row ends."""
        for self._finest in _FINEST:
            self.used.clear()
            rows: list[str] = []
            bars: list[str] = []
            y = top
            for rank in self._ranks:
                y += self._row(rank, y, rows, bars)
            if len(bars) <= _MOST_PIECES:
                break
        return rows, bars, y

    def _x(self, time: float) -> float:
        return LEFT + (time - self._run.start) * self._scale

    def _row(self, rank: Rank, y: float, rows: list[str], bars: list[str]) -> float:
        """Adds a rank's; returns how much of the drawing's height it takes."""
        above = [b for b in rank.bars if not b.communicates]
        below = [b for b in rank.bars if b.communicates]
        lanes = [*_lanes(above, 2), *_lanes(below, _MOST_LANES)]
        height, gap = self._lane * max(len(lanes), 1), max(1.0, self._lane / 3)
        rows.append(element("rect", x=LEFT, y=y, width=WIDTH - LEFT - RIGHT, height=height, class_="row"))
        if self._is_labelled(rank):
            middle = y + height / 2 + min(4.0, self._lane * 0.8)
            rows.append(element("text", f"rank {rank.number}", x=LEFT - 8, y=middle, class_="label"))
        for i, lane in enumerate(lanes):
            bars += [self._bar(p, y + i * self._lane) for p in self._pieces(lane)]
        return height + gap

    def _is_labelled(self, rank: Rank) -> bool:
        """So many ranks that their labels do not touch."""
        every = 1 if self._lane >= 5 else 4 if self._lane >= 2.5 else 8
        return self._ranks.index(rank) % every == 0

    def _pieces(self, lane: Iterable[Bar]) -> list[_Piece]:
        pieces: list[_Piece] = []
        for bar in lane:
            left, right = self._x(bar.start), self._x(bar.end)
            last = pieces[-1] if pieces else None
            if last and self._touch(last, left, right) and colour(last.first) == colour(bar):
                last.right = max(last.right, right)
                last.count += 1
            else:
                pieces.append(_Piece(bar, left, right))
        return pieces

    def _touch(self, last: _Piece, left: float, right: float) -> bool:
        narrow = right - left < self._finest or last.right - last.left < self._finest
        return narrow and left - last.right < self._finest

    def _bar(self, piece: _Piece, y: float) -> str:
        bar = piece.first
        class_ = colour(bar)
        self.used[class_] = None
        width = max(piece.right - piece.left, min(self._finest, 0.4))
        place = f'x="{fine(piece.left)}" y="{number(y)}" width="{fine(width)}" height="{number(self._lane)}"'
        if width < _THIN:
            place += " data-thin"
        if piece.count > 1:
            said = f"{piece.count} × {bar.name} or alike, {units.time((piece.right - piece.left) / self._scale)}"
            return f'<rect {place} class="{class_}">{tip(said)}</rect>'
        if bar.key is not None:
            return f'<rect {place} class="{class_}" data-c="{self._index[bar.key]}"/>'
        return f'<rect {place} class="{class_}">{tip(f"{bar.name}, {units.time(bar.end - bar.start)}")}</rect>'

    def _annotations(self) -> tuple[list[str], list[str]]:
        """Draws the first rank's outermost annotations above the rows: boxes, and names where there is room."""
        first, parts, names = self._ranks[0], [], []
        for a in _outermost(first.annotations):
            left, right = max(LEFT, self._x(a.start)), min(WIDTH - RIGHT, self._x(a.end))
            if right - left < 2:
                continue
            said = tip(f"{a.name}, {units.time(a.end - a.start)} of rank {first.number}'s host")
            place = {"x": left, "y": TOP - 2, "width": right - left - 0.5, "height": 13.0}
            parts.append(element("rect", said, **place, class_="annotation"))
            shown = None if right - left > 7 * len(a.name) else "none"
            ends = {"x": (left + right) / 2, "y": TOP + 8, "data_left": left, "data_right": right}
            names.append(element("text", escaped(a.name), **ends, display=shown, class_="annotation-name"))
        return parts, names

    def _axis(self, top: float, bottom: float) -> list[str]:
        parts = []
        for t in ticks(self._run.duration, 9):
            x = LEFT + t * self._scale
            parts.append(element("line", x1=x, x2=x, y1=top - 3, y2=bottom + 3, class_="grid"))
            style = "text-anchor:end" if x > WIDTH - RIGHT - 24 else None  # as the script does
            parts.append(element("text", units.time(t), x=x, y=bottom + 17, class_="tick", style=style))
        return parts


def ticks(duration: float, about: int) -> list[float]:
    """Round times from 0 on."""
    if duration <= 0:
        return [0.0]
    step = duration / about
    power = 10 ** math.floor(math.log10(step))
    step = next(f * power for f in (1, 2, 5, 10) if f * power >= step)
    return [i * step for i in range(int(duration / step) + 1)]


def _chosen(ranks: Sequence[Rank]) -> list[Rank]:
    """All, or so many that the drawing is not too long, from the first to the last."""
    if len(ranks) <= _MOST_ROWS:
        return list(ranks)
    return [ranks[i * (len(ranks) - 1) // (_MOST_ROWS - 1)] for i in range(_MOST_ROWS)]


def _height(rows: int) -> float:
    """Of a lane, in so many rows."""
    return 13.0 if rows <= 8 else 8.0 if rows <= 16 else 5.0 if rows <= 32 else 3.5 if rows <= 64 else 2.0


def _lanes(bars: Sequence[Bar], most: int) -> list[list[Bar]]:
    """Bars that do not overlap, where that needs no more lanes than so many."""
    lanes: list[list[Bar]] = []
    for bar in bars:
        fitting = next((lane for lane in lanes if lane[-1].end <= bar.start + _ROUNDING), None)
        if fitting is None and len(lanes) < most:
            lanes.append(fitting := [])
        (fitting if fitting is not None else lanes[-1]).append(bar)
    return lanes


def _outermost(annotations: Iterable[Annotation]) -> list[Annotation]:
    chosen: list[Annotation] = []
    for a in sorted(annotations, key=lambda a: (a.start, -a.end)):
        if not chosen or a.start >= chosen[-1].end:
            chosen.append(a)
    return chosen
