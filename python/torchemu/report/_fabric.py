"""The fabric: a drawing of the topology whose links have the colours of their use."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from torchemu.report import _units as units
from torchemu.report._analysis import Link
from torchemu.report._svg import element, heat, number, picture, tip

WIDTH = 1180.0
_SIP = 30.0  # side of a SIP's square
_PAD = 26.0  # around a node's SIPs
_TITLE = 18.0  # above them
_MOST_CHORDS = 16  # SIPs that are each joined with each: more are a matrix
_ROUND = 24  # SIPs of a ring that are on a circle: more are on a folded one
_BOWS = 10.0  # what those around a torus need beside it
_ROW = 16  # SIPs of a row at a switch

Point = tuple[float, float]
_END = re.compile(r"n(\d+)\.(?:s(\d+)|switch)(?:\.(io|nic|c\d+)(\.hbm)?)?$")


@dataclass
class _Node:
    """The drawing of a node. A SIP's number is the end of a line; None is the switch.

    Attributes:
        lines: the links between SIPs, and between them and the switch.
    """

    number: int
    sips: list[int] = field(default_factory=list)
    lines: dict[tuple[int | None, int | None], Link] = field(default_factory=dict)


class Fabric:
    """Draws what the links of a run have carried.

    Args:
        spec: the topology's tree.
        links: all that are known.
    """

    def __init__(self, spec: dict[str, Any], links: Sequence[Link]) -> None:
        self._system, self._mesh = spec["system"], spec["sip"]["cube_mesh"]
        self._nodes: dict[int, _Node] = {}
        self._cards: dict[int, dict[str, Link]] = defaultdict(dict)  # of a SIP, out and in
        self._inner: dict[int, list[Link]] = defaultdict(list)  # of a SIP
        self._cubes: dict[int, dict[tuple[int, int], Link]] = defaultdict(dict)  # of a SIP, between its cubes
        self.busiest = max((link.share for link in links), default=0.0)
        self._lay_out_sips()
        for link in links:
            self._place(link)

    def _lay_out_sips(self) -> None:
        nodes, sips = self._system["nodes"]["count"], self._system["sips"]["count"]
        for node in range(nodes):
            each = sips // nodes
            self._nodes[node] = _Node(node, list(range(node * each, (node + 1) * each)))

    def _place(self, link: Link) -> None:
        source, target = _END.match(link.source), _END.match(link.target)
        if source is None or target is None:  # one is the network
            card = source or target
            if card is not None and card[2]:
                self._cards[int(card[2])]["out" if source is card else "in"] = link
            return
        a, b = (int(end[2]) if end[2] else None for end in (source, target))
        if a != b:
            self._nodes[int(source[1])].lines[a, b] = link
            return
        assert a is not None
        self._inner[a].append(link)
        cubes = [re.fullmatch(r"c(\d+)", end[3] or "") for end in (source, target)]
        if cubes[0] and cubes[1] and not source[4] and not target[4]:
            self._cubes[a][int(cubes[0][1]), int(cubes[1][1])] = link

    def svg(self) -> tuple[str, float]:
        """The drawing, and how wide it is."""
        boxes = [self._node(node) for node in self._nodes.values()]
        boxes += [self._sip_inside(sip) for sip in list(self._cubes)[:1]]
        placed, x, y, row = [], 0.0, 0.0, 0.0
        gap = 16.0
        lines: list[list[tuple[str, float, float]]] = [[]]
        for content, width, height in boxes:
            if lines[-1] and x + width > WIDTH:
                lines.append([])
                x = 0.0
            lines[-1].append((content, width, height))
            x += width + gap
        widest = max(sum(w for _, w, _ in line) + gap * (len(line) - 1) for line in lines)
        for line in lines:
            used = sum(width for _, width, _ in line) + gap * (len(line) - 1)
            x, row = (widest - used) / 2, max(height for _, _, height in line)
            for content, width, _ in line:
                placed.append(element("g", content, transform=f"translate({number(x)},{number(y)})"))
                x += width + gap
            y += row + gap
        return picture(widest, y - gap, placed, "fabric"), widest

    # -- nodes

    def _node(self, node: _Node) -> tuple[str, float, float]:
        """A node's drawing, its width and its height."""
        connect, n = self._system["sips"]["connect"], len(node.sips)
        if connect == "fully_connected" and n > _MOST_CHORDS:
            return self._matrix(node)
        layout = {"ring": _ring, "fully_connected": _wide_circle, "torus2d": self._grid, "switch": _rows}[connect]
        places = dict(zip(node.sips, layout(n), strict=True))
        width = max(x for x, _ in places.values()) + _SIP / 2 + _PAD
        height = max(y for _, y in places.values()) + _SIP / 2 + _PAD
        if connect == "torus2d":
            width, height = width + _BOWS, height + _BOWS
        parts = [_frame(f"node {node.number}", width, height)]
        if connect == "switch":
            parts += self._switch(node, places)
        else:
            for (a, b), link in node.lines.items():
                assert a is not None and b is not None  # there is no switch
                parts.append(self._line(places, a, b, link))
        rows = sorted({y for _, y in places.values()})
        for sip, at in places.items():  # network cards are where the switch is not
            parts.append(self._sip(sip, at, below=connect == "switch" and rows.index(at[1]) % 2 == 1))
        return "".join(parts), width, height

    def _grid(self, n: int) -> list[Point]:
        w = self._system["sips"]["w"]
        return [_at(78.0 * (i % w), 78.0 * (i // w)) for i in range(n)]

    def _line(self, places: dict[int, Point], a: int, b: int, link: Link) -> str:
        (ax, ay), (bx, by) = places[a], places[b]
        distance = math.hypot(bx - ax, by - ay)
        if self._system["sips"]["connect"] == "torus2d" and distance > 80:  # the way around
            return self._bow((ax, ay), (bx, by), link)
        return self._arrow((ax, ay), (bx, by), link, _SIP / 2 + 1)

    def _arrow(self, a: Point, b: Point, link: Link, margin: float, aside: float = 3.2) -> str:
        """A line from one place to another, on the right of the way, with its head."""
        length = math.hypot(b[0] - a[0], b[1] - a[1]) or 1.0
        ux, uy = (b[0] - a[0]) / length, (b[1] - a[1]) / length
        edge = margin * min(1 / max(abs(ux), abs(uy)), math.sqrt(2))
        ox, oy = -uy * aside, ux * aside
        x1, y1 = a[0] + ux * edge + ox, a[1] + uy * edge + oy
        x2, y2 = b[0] - ux * edge + ox, b[1] - uy * edge + oy
        return self._drawn(f"M{number(x1)} {number(y1)}L{number(x2)} {number(y2)}", (x2, y2), (ux, uy), link)

    def _bow(self, a: Point, b: Point, link: Link) -> str:
        """Around a torus: a bow beside the row or the column."""
        side = 1 if (b[0] - a[0]) + (b[1] - a[1]) > 0 else -1
        flat = abs(b[0] - a[0]) > abs(b[1] - a[1])
        depth = 30.0 + 3.2 * side
        out = (0.0, depth) if flat else (depth, 0.0)
        shift = (0.0, _SIP / 2) if flat else (_SIP / 2, 0.0)
        step = (4.0 * side, 0.0) if flat else (0.0, 4.0 * side)
        x1, y1 = a[0] + shift[0] + step[0], a[1] + shift[1] + step[1]
        x2, y2 = b[0] + shift[0] - step[0], b[1] + shift[1] - step[1]
        path = (
            f"M{number(x1)} {number(y1)}C{number(x1 + out[0])} {number(y1 + out[1])} "
            f"{number(x2 + out[0])} {number(y2 + out[1])} {number(x2)} {number(y2)}"
        )
        return self._drawn(path, (x2, y2), (-out[0] / depth, -out[1] / depth), link)

    def _drawn(self, path: str, end: Point, way: Point, link: Link) -> str:
        colour, (x, y), (ux, uy) = self._colour(link), end, way
        corners = [
            (x, y),
            (x - 7 * ux - 3.5 * uy, y - 7 * uy + 3.5 * ux),
            (x - 7 * ux + 3.5 * uy, y - 7 * uy - 3.5 * ux),
        ]
        head = " ".join(f"{number(px)},{number(py)}" for px, py in corners)
        line = element("path", d=path, stroke=colour, class_="link")
        return element("g", tip(said(link)) + line + element("polygon", points=head, fill=colour), class_="over")

    def _switch(self, node: _Node, places: dict[int, Point]) -> list[str]:
        """Bars between pairs of rows, with a line out and one in from each SIP."""
        parts = []
        rows = sorted({y for _, y in places.values()})
        left, right = min(x for x, _ in places.values()), max(x for x, _ in places.values())
        for above in rows[::2]:
            middle = above + 52.0
            parts.append(element("rect", x=left - _SIP / 2, y=middle - 8, width=right - left + _SIP, height=16.0,
                                 rx=4.0, class_="switch"))  # fmt: skip
            parts.append(element("text", "switch", x=(left + right) / 2, y=middle + 4, class_="outside"))
        for sip, (x, y) in places.items():
            middle = rows[rows.index(y) // 2 * 2] + 52.0
            towards = 1 if middle > y else -1
            edge = (x, middle - 8.0 * towards)
            for a, b, ends in ((sip, None, ((x, y), edge)), (None, sip, (edge, (x, y)))):
                link = node.lines.get((a, b))
                if link is not None:
                    parts.append(self._short(ends[0], ends[1], link, towards))
        return parts

    def _short(self, a: Point, b: Point, link: Link, towards: int) -> str:
        down = b[1] > a[1]
        aside = -5.0 if down else 5.0
        shift = (_SIP / 2 + 1) * towards
        start, end = (a[0] + aside, a[1]), (b[0] + aside, b[1])
        if down == (towards > 0):
            start = (start[0], start[1] + shift)
        else:
            end = (end[0], end[1] + shift)
        way = (0.0, 1.0 if down else -1.0)
        return self._drawn(f"M{number(start[0])} {number(start[1])}L{number(end[0])} {number(end[1])}", end, way, link)

    def _matrix(self, node: _Node) -> tuple[str, float, float]:
        """A square for each pair of SIPs: its row sends to its column."""
        n = len(node.sips)
        cell = max(5.0, min(22.0, 640.0 / n))
        parts = [
            _frame(f"node {node.number}: from the SIP of the row to that of the column", n * cell + 92, n * cell + 66)
        ]
        first = node.sips[0]
        for (a, b), link in node.lines.items():
            assert a is not None and b is not None
            x, y = 56 + (b - first) * cell, 44 + (a - first) * cell
            parts.append(element("rect", tip(said(link)), x=x, y=y, width=cell - 1, height=cell - 1,
                                 fill=self._colour(link), class_="over"))  # fmt: skip
        every = max(1, math.ceil(24 / cell))
        for i in range(0, n, every):
            middle = (i + 0.5) * cell
            parts.append(element("text", str(first + i), x=50.0, y=48 + middle, class_="label"))
            parts.append(element("text", str(first + i), x=56 + middle, y=39.0, class_="tick"))
        return "".join(parts), n * cell + 92, n * cell + 66

    # -- SIPs

    def _sip(self, sip: int, at: Point, below: bool) -> str:
        """A SIP's square, in the colour of the busiest link inside of it, and the two links of its network card."""
        inner = sorted(self._inner[sip], key=lambda link: (-link.share, link.name))
        x, y = at[0] - _SIP / 2, at[1] - _SIP / 2
        lines = [f"SIP {sip}", *(said(link) for link in inner[:6])]
        share = inner[0].share if inner else 0.0
        colour = self._tint(share)
        parts = [
            tip("\n".join(lines)),
            element("rect", x=x, y=y, width=_SIP, height=_SIP, rx=5.0, fill=colour, class_="sip"),
            self._number(str(sip), at, share),
        ]
        top = y + _SIP + 1 if below else y - 7
        cards = [
            self._card(link, x + 3 if way == "out" else x + _SIP - 13, top) for way, link in self._cards[sip].items()
        ]
        return "".join([element("g", "".join(parts), class_="over"), *cards])

    def _card(self, link: Link, x: float, y: float) -> str:
        shape = element("rect", tip(said(link)), x=x, y=y, width=10.0, height=6.0, fill=self._colour(link))
        return element("g", shape, class_="over")

    def _sip_inside(self, sip: int) -> tuple[str, float, float]:
        """The mesh of a SIP's cubes, each in the colour of its memory."""
        w, h = self._mesh["w"], self._mesh["h"]
        places = [_at(70.0 * (c % w), 70.0 * (c // w)) for c in range(w * h)]
        width, height = places[-1][0] + _SIP / 2 + _PAD, places[-1][1] + _SIP / 2 + _PAD
        parts = [_frame(f"inside of SIP {sip}", width, height)]
        parts += [self._arrow(places[a], places[b], link, _SIP / 2 + 1) for (a, b), link in self._cubes[sip].items()]
        for cube, at in enumerate(places):
            memory = [link for link in self._inner[sip] if f".c{cube}.hbm" in f"{link.source}>{link.target}>"]
            share = max((link.share for link in memory), default=0.0)
            shape = element("rect", x=at[0] - _SIP / 2, y=at[1] - _SIP / 2, width=_SIP, height=_SIP, rx=5.0,
                            fill=self._tint(share), class_="sip")  # fmt: skip
            label = self._number(f"c{cube}", at, share)
            lines = [f"cube {cube}", *(said(link) for link in memory)]
            parts.append(element("g", tip("\n".join(lines)) + shape + label, class_="over"))
        return "".join(parts), width, height

    def _number(self, text: str, at: Point, share: float) -> str:
        class_ = "on-dark" if share > self.busiest / 2 else "inside" if share else "outside"
        return element("text", text, x=at[0], y=at[1] + 4, class_=class_)

    def _colour(self, link: Link) -> str:
        return heat(link.share / self.busiest if self.busiest else 0.0)

    def _tint(self, share: float) -> str:
        return heat(share / self.busiest if self.busiest else 0.0) if share else "var(--card)"


def said(link: Link) -> str:
    """A link in words."""
    return (
        f"{link.source} → {link.target}: {units.size(link.size)}, {units.share(link.share)} of "
        f"{units.rate(link.bandwidth / 1e9)}"
    )


def scale(busiest: float) -> str:
    """Draws the scale of the colours."""
    steps = 60
    cells = [
        element("rect", x=i * 4.0, y=0.0, width=4.3, height=12.0, fill=heat(i / (steps - 1))) for i in range(steps)
    ]
    labels = [
        element("text", units.share(busiest * part), x=240 * part, y=28.0, class_=f"at-{int(100 * part)}")
        for part in (0.0, 0.5, 1.0)
    ]
    return element("svg", "".join([*cells, *labels]), class_="scale", viewBox="-30 0 300 32")


def _at(x: float, y: float) -> Point:
    """A place inside of a node's frame."""
    return x + _PAD + _SIP / 2, y + _PAD + _TITLE + _SIP / 2


def _frame(title: str, width: float, height: float) -> str:
    box = element("rect", x=0.5, y=0.5, width=width - 1, height=height - 1, rx=10.0, class_="frame")
    return box + element("text", title, x=12.0, y=18.0, class_="title")


def _ring(n: int) -> list[Point]:
    if n <= _ROUND:
        return _circle(n)
    return [_at(50.0 * x, 50.0 * y) for x, y in folded(n)]


def folded(n: int) -> list[tuple[int, int]]:
    """A ring as a way over a grid, each step to a neighbouring place: along the rows forwards and backwards, and back
    to the start through the first column. Rings of odd length have a gap there, over which the last step goes.

    Args:
        n: how long the ring is, from 25 on.
    """
    width = min(32, math.ceil(math.sqrt(1.5 * n)))
    pairs = math.ceil((n + n % 2) / (2 * width))  # of rows
    spare = pairs * width - (n + n % 2) // 2  # columns that pairs need not have
    way = [(0, 0)]
    for pair in range(pairs):
        left_out = spare // (pairs - pair)
        spare -= left_out
        row = range(1, width - left_out)
        way += [(x, 2 * pair) for x in row] + [(x, 2 * pair + 1) for x in reversed(row)]
    way += [(0, y) for y in range(2 * pairs - 1, 0, -1)]
    return way[:n]


def _circle(n: int, apart: float = 1.9) -> list[Point]:
    """SIPs on a circle, so far apart as so many SIPs are wide, from the top on."""
    if n == 1:
        return [_at(40.0, 0.0)]
    radius = max(62.0, n * _SIP * apart / (2 * math.pi))
    turns = [2 * math.pi * i / n - math.pi / 2 for i in range(n)]
    return [_at(radius * (1 + math.cos(t)), radius * (1 + math.sin(t))) for t in turns]


def _wide_circle(n: int) -> list[Point]:
    return _circle(n, max(2.0, 36 / max(n, 9)))


def _rows(n: int) -> list[Point]:
    """Pairs of rows, with room for a switch between them."""
    width = min(_ROW, max(1, math.ceil(n / 2)))
    return [_at(46.0 * (i % width), 104.0 * (i // width) + 26.0 * (i // width // 2)) for i in range(n)]
