"""The report as one HTML page, which needs nothing but itself."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from importlib import resources
from typing import Any

from torchemu.report import _tables as tables
from torchemu.report import _units as units
from torchemu.report._analysis import Collective, Link
from torchemu.report._columns import columns
from torchemu.report._fabric import Fabric, scale
from torchemu.report._load import Run
from torchemu.report._sums import Sums
from torchemu.report._svg import element, escaped, heat
from torchemu.report._text import ranks_named
from torchemu.report._timeline import Timeline, style_sheet

_WIDE = 700  # a drawing that is wider has nothing beside it
_NAMES = {
    "compute": "kernels",
    "copy": "copies from and to the host",
    "message": "messages",
    "other": "others",
    "host": "calls of the host",
    "wait": "waits of the host",
    "dma": "DMA engines",
    "nic": "network cards",
    "step": "steps of algorithms",
    "hang": "what hangs",
    "annotation": "names that the program gave",
}


def page(run: Run, sums: Sums, top: int) -> str:
    """All of it, with so many of the slowest collectives."""
    sections, data = [_head(run)], {}
    if not run.is_empty:
        timeline = Timeline(run, {c.key: i for i, c in enumerate(sums.collectives)}, sums.path)
        data = {
            "data": timeline.data(),
            "collectives": [_said(c) for c in sums.collectives],
            "summary": summary(run, sums),
        }
        sections += [
            _tiles(run, sums),
            _waits(run),
            _timeline(run, timeline),
            _exposed(sums, run.duration),
            tables.path(sums.path),
            tables.kernels(sums.kernels),
            _fabric(run, sums.links),
            tables.operations(sums.operations),
            tables.slowest(sums.slowest[:top], sums.collectives),
        ]
    return document(f"{run.name}: torchemu report", sections, data)


def document(title: str, sections: Sequence[str], data: dict[str, Any]) -> str:
    """A page of sections, whose script reads the data."""
    library = [_resource("uplot/uPlot.iife.min.js"), _resource("timeline.js")] if data else []
    return _DOCUMENT.format(
        title=escaped(title),
        style=_resource("uplot/uPlot.min.css") + "\n" + _resource("page.css") + style_sheet(),
        body="\n".join(s for s in sections if s),
        data="\n".join(_json(name, value) for name, value in data.items()),
        license=_resource("uplot/LICENSE") if data else "",
        script="\n".join([*library, _resource("page.js")]),
    )


def _json(name: str, value: Any) -> str:
    text = json.dumps(value, separators=(",", ":")).replace("<", "\\u003c")
    return f'<script type="application/json" id="{name}">{text}</script>'


def summary(run: Run, sums: Sums) -> dict[str, Any]:
    """The report's figures as JSON has them; times in microseconds."""
    whole = {name: list(map(dataclasses.asdict, getattr(sums, name))) for name in _SUMMED}
    return {"run": run.name, "topology": run.topology, "ranks": len(run.ranks), "duration": run.duration, **whole}


_SUMMED = ("shares", "operations", "collectives", "kernels", "path_parts", "links")

_DOCUMENT = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>{title}</title>
<style>
{style}</style>
</head>
<body>
<svg width="0" height="0" style="position:absolute" aria-hidden="true"><defs>
<pattern id="hatch" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">
<rect width="2.4" height="6" style="fill:var(--hidden)"/></pattern></defs></svg>
<main>
{body}
</main>
<div id="tip"></div>
{data}
<script>
/*! The charts are uPlot's. {license}*/
{script}</script>
</body>
</html>
"""


def _resource(name: str) -> str:
    return resources.files("torchemu.report").joinpath(name).read_text(encoding="utf-8")


def _head(run: Run) -> str:
    n = len(run.ranks)
    where = f" on {escaped(run.topology)}" if run.topology else ""
    about = f"{n} rank{'s' if n > 1 else ''}{where}; all times are simulated"
    if run.is_empty:
        about = f"No device did anything{where} while this was recorded."
    failed = f"The run failed, {run.failure}."
    return "".join(
        [
            element("h1", escaped(run.name)),
            element("p", about),
            element("p", escaped(failed), class_="failed") if run.failure else "",
        ]
    )


def _tiles(run: Run, sums: Sums) -> str:
    duration = run.duration or 1.0
    mean = {what: sum(getattr(s, what) for s in sums.shares) / len(sums.shares) / duration for what in _MEANS}
    n = len(sums.collectives)
    tiles = [
        (units.time(run.duration), "simulated"),
        (f"{n:,}", f"collective{'' if n == 1 else 's'}"),
        *((units.share(mean[what]), said) for what, said in _MEANS.items()),
    ]
    if sums.links and sums.links[0].size:
        tiles.append((units.share(sums.links[0].share), _busiest(sums.links)))
    return element(
        "div", "".join(element("div", element("b", a) + element("span", escaped(b)), class_="tile") for a, b in tiles),
        class_="tiles",
    )  # fmt: skip


_MEANS = {
    "compute": "of the time computing, on average",
    "waiting": "waiting for other ranks, with nothing to do",
    "transfer": "in exposed transfers",
}


def _busiest(links: Sequence[Link]) -> str:
    equal = sum(units.share(link.share) == units.share(links[0].share) for link in links)
    if equal > 1:
        return f"of the bandwidth of each of the {equal} busiest links"
    return f"of the bandwidth of {links[0].name}, the busiest link"


def _waits(run: Run) -> str:
    """Returns the table of waits in which a run hangs."""
    if not run.waits:
        return ""
    rows = []
    for wait in run.waits:
        needs = wait["needs"]
        missing = escaped(ranks_named(needs)) if needs else ""
        rows.append((escaped(ranks_named(wait["ranks"]).partition(" ")[2]), escaped(wait["on"]), missing))
    about = "These ranks waited, and nothing could happen any more. In the timeline their waits are hatched."
    return tables.section("What hangs", about, tables.table(("ranks", "wait for", "would have to act"), rows))


def _timeline(run: Run, timeline: Timeline) -> str:
    about = (
        "Each rank's device: streams above, collectives and messages below; a click on a rank's name shows its host, "
        "its steps and its engines, too. Drag over a time to see it more closely; a double click shows all; with "
        "Ctrl the wheel zooms, with Shift it moves. Keys: ← → + − 0, / searches, n and p go on. "
        "A click on a bar keeps what is said of it."
    )
    key = "".join(_key(class_, _NAMES.get(class_, class_.replace("-", "_"))) for class_ in timeline.used)
    return tables.section(
        "Timeline", about, _TOOLS, element("div", key, class_="key"),
        _curve("memory", "Memory", _memory_about(run)), _curve("links", "Use of links", _links_about(run)),
    )  # fmt: skip


def _memory_about(run: Run) -> str:
    if not any(rank.memory for rank in run.ranks):
        return ""
    of = "of each rank" if len(run.ranks) <= 8 else "of the 8 ranks with the highest peaks"
    return f"What the program has in use of its device's memory, {of}."


def _links_about(run: Run) -> str:
    if run.fabric is None:
        return ""
    if not run.fabric.get("use"):
        return "Over time with <code>torchemu run --trace-level link</code>."
    return "The share of its bandwidth that each of the busiest links carries."


def _curve(name: str, title: str, about: str) -> str:
    chart = element("div", " ", id=name, class_="curve") + element("div", " ", class_="key")
    return element("div", element("h3", title) + element("p", about) + chart) if about else _HIDDEN.format(name)


_HIDDEN = '<div hidden><div id="{}"> </div><div class="key"> </div></div>'

_TOOLS = """<div class="tools">
<input id="search" type="search" placeholder="Search names and places" aria-label="Search">
<button id="previous" title="previous one found (p)">‹</button><button id="next" title="next one found (n)">›</button>
<span id="found" aria-live="polite"> </span><span class="gap"> </span>
<button id="zoom-out" title="longer time (-)">−</button><button id="zoom-in" title="shorter time (+)">+</button>
<button id="whole" title="all of the time (0)">All</button>
<button id="all-rows" aria-pressed="false">All rows</button>
<button id="path" aria-pressed="false">Critical path</button><span class="gap"> </span>
<button id="png" title="the timeline as a picture">PNG</button><button id="csv" title="all bars">CSV</button>
<button id="json" title="the tables of this page">JSON</button>
</div>
<div id="rows" tabindex="0" role="img" aria-label="Timeline"><div id="timeline"> </div><div id="spacer"> </div></div>
<div id="pinned" hidden><pre id="pinned-text"> </pre><button id="unpin" title="let go (Escape)">×</button></div>
"""


def _key(class_: str, name: str) -> str:
    square = element("svg", element("rect", width=12, height=12, rx=3, class_=class_), viewBox="0 0 12 12")
    return element("span", square + escaped(name))


def _exposed(sums: Sums, duration: float) -> str:
    about = (
        "How each device spent the time. Exposed communication is what nothing else hides: transfer, with all ranks "
        "ready, or waiting for those that are not. Communication behind kernels and copies is hatched."
    )
    hidden = element("rect", width=12, height=12, class_="part-compute")
    hidden += element("rect", width=12, height=12, class_="part-overlapped")
    square = element("svg", hidden, viewBox="0 0 12 12")
    key = [_key("part-compute", "kernels"), _key("part-copy", "copies"), _key("part-transfer", "exposed transfer")]
    key += [_key("part-waiting", "waiting for other ranks"), element("span", square + "with communication behind")]
    return tables.section(
        "Exposed communication",
        about,
        element("div", columns(sums.shares, duration), class_="scroll"),
        element("div", "".join(key), class_="key"),
    )


def _fabric(run: Run, links: Sequence[Link]) -> str:
    if run.fabric is None:
        return ""
    if not any(link.size for link in links):
        return tables.section("Links", "No link carried anything.")
    fabric = Fabric(run.fabric["spec"], links)
    about = (
        "What part of its bandwidth each link used on average. Traffic keeps to the right: of two lines between two "
        "SIPs, each leads to its head. A SIP has the colour of its busiest link inside, to its memory or port"
    )
    cards = "; at its edge are the links of its network card, out and in."
    about += cards if run.fabric["spec"]["system"]["nodes"]["count"] > 1 else "."
    rows = []
    for link in links[:8]:
        part = link.share / (fabric.busiest or 1)
        cells = (escaped(link.name), tables.Number(link.size, units.size), tables.Number(link.share, units.share))
        rows.append((tables.bar(part, heat(part)), *cells))
    listed = tables.table(("", "busiest links", "carried#", "of its bandwidth#"), rows)
    drawing, width = fabric.svg()
    frame = element(
        "div", drawing, style=f"max-width:{width:.0f}px;flex:1 1 {width if width > _WIDE else min(width, 420):.0f}px"
    )
    beside = element("div", scale(fabric.busiest) + listed, class_="beside")
    return tables.section("Links", about, element("div", frame + beside, class_="links"))


def _said(c: Collective) -> str:
    lines = [
        f"{c.name} #{c.number} of {c.group}, {c.ranks} ranks",
        f"{units.size(c.size)} in {units.time(c.time)} by {c.algorithm or 'an unknown algorithm'}",
        f"busbw {units.rate(c.busbw)}; the first rank waited {units.time(c.skew)}",
        c.site,
    ]
    return "\n".join(line for line in lines if line)
