"""The report as one HTML page, which needs nothing but itself."""

from __future__ import annotations

import json
from collections.abc import Sequence
from importlib import resources

from torchemu.report import _units as units
from torchemu.report._analysis import Collective, Link, Operation, Shares
from torchemu.report._columns import columns
from torchemu.report._fabric import Fabric, scale
from torchemu.report._load import Run
from torchemu.report._svg import element, escaped, heat
from torchemu.report._timeline import Timeline, colour_of, style_sheet

_WIDE = 700  # a drawing that is wider has nothing beside it
_NAMES = {"compute": "kernels", "copy": "copies from and to the host", "message": "messages", "other": "others"}


def page(
    run: Run,
    shares: Sequence[Shares],
    collectives: Sequence[Collective],
    operations: Sequence[Operation],
    slowest: Sequence[Collective],
    links: Sequence[Link],
) -> str:
    """All of it."""
    sections = [_head(run)]
    if not run.is_empty:
        timeline = Timeline(run, {c.key: i for i, c in enumerate(collectives)})
        sections += [
            _tiles(run, shares, collectives, links),
            _timeline(timeline),
            _exposed(shares, run.duration),
            _fabric(run, links),
            _operations(operations),
            _slowest(slowest),
        ]
    about = json.dumps([_said(c) for c in collectives]).replace("<", "\\u003c")
    return _DOCUMENT.format(
        title=escaped(f"{run.name}: torchemu report"),
        style=_resource("page.css") + style_sheet(),
        body="\n".join(s for s in sections if s),
        about=about,
        script=_resource("page.js"),
    )


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
<script type="application/json" id="collectives">{about}</script>
<script>
{script}</script>
</body>
</html>
"""


def _resource(name: str) -> str:
    return resources.files("torchemu.report").joinpath(name).read_text()


def _section(title: str, about: str, *content: str) -> str:
    return element("section", "\n".join([element("h2", title), element("p", about), *content]))


def _head(run: Run) -> str:
    n = len(run.ranks)
    where = f" on {escaped(run.topology)}" if run.topology else ""
    about = f"{n} rank{'s' if n > 1 else ''}{where}; all times are simulated"
    if run.is_empty:
        about = f"No device did anything{where} while this was recorded."
    failed = f"The run failed, {run.failure}. What had not ended then is not shown."
    return "".join(
        [
            element("h1", escaped(run.name)),
            element("p", about),
            element("p", escaped(failed), class_="failed") if run.failure else "",
        ]
    )


def _tiles(run: Run, shares: Sequence[Shares], collectives: Sequence[Collective], links: Sequence[Link]) -> str:
    duration = run.duration or 1.0
    mean = {what: sum(getattr(s, what) for s in shares) / len(shares) / duration for what in ("compute", "exposed")}
    tiles = [
        (units.time(run.duration), "simulated"),
        (f"{len(collectives):,}", f"collective{'' if len(collectives) == 1 else 's'}"),
        (units.share(mean["compute"]), "of the time computing, on average"),
        (units.share(mean["exposed"]), "in exposed communication"),
    ]
    if links and links[0].size:
        tiles.append((units.share(links[0].share), f"of the bandwidth of {links[0].name}, the busiest link"))
    return element(
        "div", "".join(element("div", element("b", a) + element("span", escaped(b)), class_="tile") for a, b in tiles),
        class_="tiles",
    )  # fmt: skip


def _timeline(timeline: Timeline) -> str:
    drawing = _as_wide_as_needed(timeline.svg())
    left_out = f" Of {timeline.left_out} further ranks there are no rows." if timeline.left_out else ""
    about = (
        "Each rank's device: kernels above, communication below. Drag over a time to see it more closely; with Ctrl "
        f"the wheel does so, with Shift it moves. A double click shows all.{left_out}"
    )
    key = "".join(_key(class_, _NAMES.get(class_, class_.replace("-", "_"))) for class_ in timeline.used)
    return _section("Timeline", about, drawing, element("div", key, class_="key"))


def _as_wide_as_needed(drawing: str) -> str:
    """A drawing that on a narrow screen is moved about in, and not made illegible."""
    return element("div", drawing, class_="scroll")


def _key(class_: str, name: str) -> str:
    square = element("svg", element("rect", width=12, height=12, rx=3, class_=class_), viewBox="0 0 12 12")
    return element("span", square + escaped(name))


def _exposed(shares: Sequence[Shares], duration: float) -> str:
    about = (
        "How each device spent the time. Exposed communication is what nothing else hides; communication behind "
        "kernels and copies is hatched."
    )
    hidden = element("rect", width=12, height=12, class_="part-compute")
    hidden += element("rect", width=12, height=12, class_="part-overlapped")
    square = element("svg", hidden, viewBox="0 0 12 12")
    key = [_key("part-compute", "kernels"), _key("part-copy", "copies"), _key("part-exposed", "exposed communication")]
    key.append(element("span", square + "with communication behind"))
    return _section(
        "Exposed communication",
        about,
        _as_wide_as_needed(columns(shares, duration)),
        element("div", "".join(key), class_="key"),
    )


def _fabric(run: Run, links: Sequence[Link]) -> str:
    if run.fabric is None:
        return ""
    if not any(link.size for link in links):
        return _section("Links", "No link carried anything.")
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
        cells = (escaped(link.name), units.size(link.size), units.share(link.share))
        rows.append((_bar(part, heat(part)), *cells))
    table = _table(("", "busiest links", "carried#", "of its bandwidth#"), rows)
    drawing, width = fabric.svg()
    frame = element(
        "div", drawing, style=f"max-width:{width:.0f}px;flex:1 1 {width if width > _WIDE else min(width, 420):.0f}px"
    )
    beside = element("div", scale(fabric.busiest) + table, class_="beside")
    return _section("Links", about, element("div", frame + beside, class_="links"))


def _bar(share: float, colour: str) -> str:
    return f'<span class="bar"><i style="width:{100 * share:.1f}%;background:{colour}"></i></span>'


def _operations(operations: Sequence[Operation]) -> str:
    if not operations:
        return _section("Collectives", "There were none.")
    longest = operations[0].time or 1.0
    rows = [
        (
            _dot(o.name),
            str(o.calls),
            _of(o.name, o.time / longest),
            units.time(o.time),
            units.size(o.size),
            units.time(o.skew),
        )
        for o in operations
    ]
    header = ("collective", "calls#", "", "time#", "bytes#", "waited for the last rank#")
    return _section("Collectives", "Sums over all calls.", _table(header, rows))


def _slowest(slowest: Sequence[Collective]) -> str:
    if not slowest:
        return ""
    longest = slowest[0].time or 1.0
    rows = [
        (
            _dot(c.name), escaped(c.algorithm), escaped(c.group), str(c.number), str(c.ranks), units.size(c.size),
            _of(c.name, c.time / longest), units.time(c.time), units.rate(c.busbw), units.time(c.skew), _place(c.site),
        )
        for c in slowest
    ]  # fmt: skip
    header = (
        "collective",
        "algorithm",
        "group",
        "no.#",
        "ranks#",
        "bytes#",
        "",
        "time#",
        "busbw#",
        "waited#",
        "called at",
    )
    about = (
        "From the last rank's arrival to the last one's end. Waited is how long the first rank did for the last one."
    )
    return _section("Slowest collectives", about, _table(header, rows))


def _dot(name: str) -> str:
    square = element(
        "svg", element("rect", width=12, height=12, rx=3, class_=colour_of(name)), class_="dot", viewBox="0 0 12 12"
    )
    return square + escaped(name)


def _place(site: str) -> str:
    """A call site without the folder, which is shown under the mouse."""
    return element("span", escaped(site.rpartition("/")[2]), title=site) if site else ""


def _of(name: str, share: float) -> str:
    return _bar(share, f"var(--{colour_of(name)})")


def _table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table. Columns whose titles end in # are numbers; cells are HTML."""
    classes = ["n" if title.endswith("#") else "site" if title == "called at" else None for title in header]
    head = "".join(element("th", t.rstrip("#") or " ", class_=c) for t, c in zip(header, classes, strict=True))
    body = "".join(
        element("tr", "".join(element("td", cell or " ", class_=c) for cell, c in zip(row, classes, strict=True)))
        for row in rows
    )
    return element("div", element("table", element("tr", head) + body), class_="scroll")


def _said(c: Collective) -> str:
    lines = [
        f"{c.name} #{c.number} of {c.group}, {c.ranks} ranks",
        f"{units.size(c.size)} in {units.time(c.time)} by {c.algorithm or 'an unknown algorithm'}",
        f"busbw {units.rate(c.busbw)}; the first rank waited {units.time(c.skew)}",
        c.site,
    ]
    return "\n".join(line for line in lines if line)
