"""The tables of the page. A click on the head of a column sorts them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from torchemu.report import _units as units
from torchemu.report._analysis import Collective, KernelSum, Operation
from torchemu.report._critical import Piece, parts
from torchemu.report._svg import element, escaped
from torchemu.report._timeline import colour_of

_WRAPPED = ("called at", "wait for")  # titles of columns of long texts
_TOP = 20  # kernels, and parts of the critical path


@dataclass(frozen=True)
class Number:
    """A number, and how it is written."""

    value: float
    write: Callable[[float], str] = lambda x: f"{x:g}"


Cell = str | Number
"""A cell: HTML, or a number."""


def section(title: str, about: str, *content: str) -> str:
    """A part of the page."""
    return element("section", "\n".join([element("h2", title), element("p", about), *content]))


def table(header: Sequence[str], rows: Sequence[Sequence[Cell]], marks: Sequence[int | None] = ()) -> str:
    """A table.

    Args:
        header: titles; columns whose titles end in # are numbers.
        rows: cells.
        marks: of each row, the collective that a click on it shows.
    """
    classes = ["n" if title.endswith("#") else "site" if title in _WRAPPED else None for title in header]
    head = "".join(element("th", t.rstrip("#") or " ", class_=c) for t, c in zip(header, classes, strict=True))
    lines = []
    for i, row in enumerate(rows):
        cells = "".join(_cell(cell, class_) for cell, class_ in zip(row, classes, strict=True))
        lines.append(element("tr", cells, data_c=marks[i] if marks else None))
    body = element("thead", element("tr", head)) + element("tbody", "".join(lines) or " ")
    return element("div", element("table", body), class_="scroll")


def _cell(cell: Cell, class_: str | None) -> str:
    if isinstance(cell, Number):
        return element("td", cell.write(cell.value), class_=class_, data_v=repr(cell.value))
    return element("td", cell or " ", class_=class_)


def bar(share: float, colour: str) -> str:
    """A bar that is as long as a share of 1."""
    return f'<span class="bar"><i style="width:{100 * share:.1f}%;background:{colour}"></i></span>'


def operations(found: Sequence[Operation]) -> str:
    """The sums over collectives."""
    if not found:
        return section("Collectives", "There were none.")
    longest = found[0].time or 1.0
    rows = [
        (
            _dot(o.name, colour_of(o.name)), Number(o.calls), _of(colour_of(o.name), o.time / longest),
            Number(o.time, units.time), Number(o.size, units.size), Number(o.skew, units.time),
        )
        for o in found
    ]  # fmt: skip
    header = ("collective", "calls#", "", "time#", "bytes#", "waited for the last rank#")
    return section("Collectives", "Sums over all calls.", table(header, rows))


def slowest(found: Sequence[Collective], all_: Sequence[Collective]) -> str:
    """The slowest collectives."""
    if not found:
        return ""
    longest = found[0].time or 1.0
    rows = [
        (
            _dot(c.name, colour_of(c.name)), escaped(c.algorithm), escaped(c.group), Number(c.number), Number(c.ranks),
            Number(c.size, units.size), _of(colour_of(c.name), c.time / longest), Number(c.time, units.time),
            Number(c.busbw, units.rate), Number(c.skew, units.time), _place(c.site),
        )
        for c in found
    ]  # fmt: skip
    header = (
        "collective", "algorithm", "group", "no.#", "ranks#", "bytes#", "", "time#", "busbw#", "waited#", "called at",
    )  # fmt: skip
    about = (
        "From the last rank's arrival to the last one's end. Waited is how long the first rank did for the last one. "
        "A click on a line shows it in the timeline."
    )
    index = {c.key: i for i, c in enumerate(all_)}
    return section("Slowest collectives", about, table(header, rows, [index[c.key] for c in found]))


def kernels(found: Sequence[KernelSum]) -> str:
    """The kernels and copies that took longest, of all ranks together."""
    if not found:
        return ""
    longest = found[0].time or 1.0
    rows = [
        (
            escaped(k.name), Number(k.calls), _of("compute", k.time / longest), Number(k.time, units.time),
            Number(k.time / k.calls, units.time), Number(k.longest, units.time), Number(k.size, units.size),
            Number(_per(k.size, k.time) / 1e3, units.rate), Number(_per(k.ops, k.time) / 1e6, _three),
        )
        for k in found[:_TOP]
    ]  # fmt: skip
    header = ("kernel", "calls#", "", "time#", "mean#", "longest#", "memory traffic#", "bandwidth#", "Tera-op/s#")
    left_out = f" {len(found) - _TOP} more took less." if len(found) > _TOP else ""
    return section("Kernels and copies", f"Sums over all calls on all ranks.{left_out}", table(header, rows))


def _per(amount: float, time: float) -> float:
    return amount / time if time else 0.0


def _three(x: float) -> str:
    return f"{x:.3g}" if x else "–"


def path(pieces: Sequence[Piece]) -> str:
    """Returns the table of the pieces that make up the length of the run."""
    found = parts(pieces)
    if not found:
        return ""
    whole = sum(p.time for p in found) or 1.0
    rows = [
        (
            _dot(p.kind, _KINDS.get(p.kind, "other")), escaped(p.name), Number(p.count),
            _of(_KINDS.get(p.kind, "other"), p.time / found[0].time if found[0].time else 0.0),
            Number(p.time, units.time), Number(p.time / whole, units.share),
        )
        for p in found[:_TOP]
    ]  # fmt: skip
    about = (
        "The chain of operations that made the run as long as it is, from its last end back: of a collective, from "
        "the last rank's arrival on. What is not on it could take longer without anybody noticing."
    )
    return section("Critical path", about, table(("", "what", "times#", "", "time#", "of the run#"), rows))


_KINDS = {
    "compute": "compute",
    "copy": "copy",
    "message": "message",
    "collective": "transfer",
    "host": "host",
    "idle": "wait",
}


def _dot(name: str, class_: str) -> str:
    square = element(
        "svg",
        element("rect", width=12, height=12, rx=3, style=f"fill:var(--{class_})"),
        class_="dot",
        viewBox="0 0 12 12",
    )
    return square + escaped(name)


def _place(site: str) -> str:
    """A call site without the folder, which is shown under the mouse."""
    return element("span", escaped(site.rpartition("/")[2]), title=site) if site else ""


def _of(class_: str, share: float) -> str:
    return bar(share, f"var(--{class_})")
