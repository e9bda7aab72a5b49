"""The timeline's data: rows of bars, packed for the script of the page, which draws them."""

from __future__ import annotations

import base64
import gzip
from array import array
from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import chain, count
from typing import Any

from torchemu.c10d.ops import KINDS
from torchemu.report import _units as units
from torchemu.report._critical import Piece
from torchemu.report._load import Annotation, Bar, Rank, Run

_MOST_LANES = 4  # of steps, which overlap
_MOST_CURVES = 8
_ROUNDING = 1e-5  # what floating point makes of times that meet, in microseconds

COLOURS = {name: name.replace("_", "-") for name in ("compute", "copy", "message", "barrier", *KINDS)}
"""The classes of bars, by what begins the operation's name. Those of collectives are style_sheet()'s."""

_OWN = {
    "host": "host",
    "wait": "wait",
    "dma": "dma",
    "nic": "nic",
    "hang": "hang",
    "step": "step",
    "annotation": "annotation",
}
"""The classes of bars of other kinds."""

_PALETTE = ("#e4572e", "#8e5bd0", "#1b998b", "#d81e82", "#a8471c", "#5a6acf", "#3c8f4f", "#c28b00")
"""Colours of the kinds of collectives, in the order of their table; others go round the circle of hues."""

_GOLDEN_ANGLE = 137.5


def style_sheet() -> str:
    """The colours of bars, as CSS."""
    hues = (f"hsl({_GOLDEN_ANGLE * i % 360:g} 55% 45%)" for i in count())
    variables = "".join(
        f"  --{COLOURS[kind]}: {hue};\n" for kind, hue in zip(KINDS, chain(_PALETTE, hues), strict=False)
    )
    classes = (f".{name} {{ fill: var(--{name}); }}\n" for name in (*COLOURS.values(), "other", *_OWN.values()))
    return f":root {{\n{variables}}}\n{''.join(classes)}"


def colour(bar: Bar) -> str:
    """The class of a bar."""
    if bar.kind in _OWN:
        return _OWN[bar.kind]
    return colour_of(bar.name) if bar.kind == "collective" else COLOURS[bar.kind]


def colour_of(collective: str) -> str:
    """The class of a collective."""
    fitting = [name for name in COLOURS if collective.startswith(name)]
    return COLOURS[max(fitting, key=len)] if fitting else "other"


class _Table:
    """Different values, each with its place."""

    def __init__(self) -> None:
        self.places: dict[Any, int] = {}

    def place(self, value: Any) -> int:
        return self.places.setdefault(value, len(self.places))


class Timeline:
    """Collects what the timeline shows.

    Args:
        run: what.
        index: the number of each collective, by which bars of one are found together.
        path: the critical path.
    """

    def __init__(self, run: Run, index: dict[tuple[str, int], int], path: Sequence[Piece]) -> None:
        self._run, self._index = run, index
        self._names, self._sites, self._notes = _Table(), _Table(), _Table()
        self._sites.place(""), self._notes.place("")
        self._places: dict[int, int] = {}  # of bars, by their id()
        self._starts, self._lengths = array("d"), array("d")
        self._numbers = [array("i") for _ in range(4)]  # of the name, the collective, the site and the note
        self._fabric = run.fabric or {}
        self._lanes = self._hardware()
        self._ranks = [self._rank(rank) for rank in run.ranks]
        self._path = [[p.rank, self._places.get(id(p.bar), -1), p.start, p.end, p.kind] for p in path]
        used = {class_ for _, class_ in self._names.places}
        self.used = [class_ for class_ in (*COLOURS.values(), "other", *_OWN.values()) if class_ in used]

    def data(self) -> dict[str, Any]:
        """Returns the script's input. Times are microseconds."""
        return {
            "first": self._run.first,
            "last": max(self._run.last, self._run.first + 1e-6),
            "ranks": self._ranks,
            "names": list(self._names.places),
            "sites": list(self._sites.places),
            "notes": list(self._notes.places),
            "count": len(self._starts),
            "columns": self._packed(),
            "path": self._path,
            "annotations": [[a.name, a.start, a.end] for a in _outermost(self._run.ranks[0].annotations)],
            "memory": self._memory(),
            "links": [[link["name"], link["parts"]] for link in self._fabric.get("use", [])[:_MOST_CURVES]],
            "span": [self._fabric.get(end, 0) / 1e6 for end in ("start", "end")],
        }

    def _packed(self) -> str:
        """The columns one after the other, little-endian, compressed, as base64."""
        columns: list[array[float] | array[int]] = [self._starts, self._lengths, *self._numbers]
        return base64.b64encode(gzip.compress(b"".join(c.tobytes() for c in columns), 6, mtime=0)).decode()

    def _rank(self, rank: Rank) -> dict[str, Any]:
        """A rank's rows. Those that are main are shown when the rank is folded, too."""
        rows = [
            self._row("host", "host", rank.host, False),
            self._row("annotations", "annotation", [_annotated(a) for a in rank.annotations], False),
        ]
        by_track: dict[int, list[Bar]] = defaultdict(list)
        for bar in rank.bars:
            by_track[bar.track].append(bar)
        for track in sorted(by_track):
            kind = "communication" if by_track[track][0].communicates else "work"
            rows.append(self._row(rank.rows.get(track, f"stream {track}"), kind, by_track[track], True))
        rows += [self._row(f"steps, {i + 1}", "steps", lane, False) for i, lane in enumerate(_lanes(rank.steps))]
        rows += [self._row(name, "lane", bars, False) for name, bars in self._lanes.get(rank.number, ())]
        rows.append(self._row("hangs", "hang", self._hanging(rank), True))
        return {"n": rank.number, "rows": [row for row in rows if row["count"]]}

    def _row(self, name: str, kind: str, bars: Sequence[Bar], main: bool) -> dict[str, Any]:
        at = len(self._starts)
        for bar in bars:
            self._add(bar)
        return {"name": name, "kind": kind, "at": at, "count": len(bars), "main": main}

    def _add(self, bar: Bar) -> None:
        self._places[id(bar)] = len(self._starts)
        self._starts.append(bar.start)
        self._lengths.append(bar.end - bar.start)
        collective = self._index.get(bar.key, -1) if bar.key is not None else -1
        places = (
            self._names.place((bar.name, colour(bar))),
            collective,
            self._sites.place(bar.site),
            self._notes.place(_note(bar)),
        )
        for column, place in zip(self._numbers, places, strict=True):
            column.append(place)

    def _hardware(self) -> dict[int, list[tuple[str, list[Bar]]]]:
        """DMA engines and network cards, by rank."""
        found: dict[int, list[tuple[str, list[Bar]]]] = defaultdict(list)
        for lane in self._fabric.get("lanes", []):
            bars = [
                Bar(lane["kind"], lane["name"], 0, b["start"] / 1e6, b["end"] / 1e6, args={"bytes": b["bytes"]})
                for b in lane["busy"]
            ]
            found[lane["sip"]].append((lane["name"], bars))
        return found

    def _hanging(self, rank: Rank) -> list[Bar]:
        """Returns a bar of the wait in which the run ended in a deadlock, since its host had done all else."""
        since = max([bar.end for bar in rank.host], default=self._run.first)
        waits = [w for w in self._run.waits if rank.number in w["ranks"]]
        return [Bar("hang", str(w["on"]), 0, since, self._run.last) for w in waits[:1]]

    def _memory(self) -> list[dict[str, Any]]:
        """The ranks with the highest peaks, in their order."""
        peaks = sorted(
            (rank for rank in self._run.ranks if rank.memory),
            key=lambda rank: (-max(size for _, size in rank.memory), rank.number),
        )
        chosen = sorted(peaks[:_MOST_CURVES], key=lambda rank: rank.number)
        return [{"n": r.number, "t": [t for t, _ in r.memory], "bytes": [b for _, b in r.memory]} for r in chosen]


def _annotated(a: Annotation) -> Bar:
    return Bar("annotation", a.name, 0, a.start, a.end)


def _note(bar: Bar) -> str:
    """Returns what else there is to say of a bar."""
    size = bar.args.get("memory traffic", bar.args.get("bytes"))
    parts = [units.size(size)] if isinstance(size, int | float) and size else []
    if bar.kind == "message":
        parts.append(f"rank {bar.args.get('Src Rank')} → rank {bar.args.get('Dst Rank')}")
    return ", ".join(parts)


def _lanes(bars: Sequence[Bar]) -> list[list[Bar]]:
    """Bars that do not overlap, where that needs no more lanes than there may be."""
    lanes: list[list[Bar]] = []
    for bar in bars:
        fitting = next((lane for lane in lanes if lane[-1].end <= bar.start + _ROUNDING), None)
        if fitting is None and len(lanes) < _MOST_LANES:
            lanes.append(fitting := [])
        (fitting if fitting is not None else lanes[-1]).append(bar)
    return lanes


def _outermost(annotations: Iterable[Annotation]) -> list[Annotation]:
    chosen: list[Annotation] = []
    for a in sorted(annotations, key=lambda a: (a.start, -a.end)):
        if not chosen or a.start >= chosen[-1].end:
            chosen.append(a)
    return chosen
