"""The table of a profile, with PyTorch's columns."""

from __future__ import annotations

import html
from collections.abc import Callable, Sequence
from typing import Any

_COLUMNS: tuple[tuple[str, Callable[[Any, _Totals], str]], ...]
_GAP = "  "
_NARROWEST = 12


class _Totals:
    """The totals that percentages are of."""

    def __init__(self, events: Sequence[Any]) -> None:
        self.cpu = sum(e.self_cpu_time_total for e in events)
        self.device = sum(e.self_device_time_total for e in events if e.device_type == "CUDA")


_COLUMNS = (
    ("Self CPU %", lambda e, t: _share(e.self_cpu_time_total, t.cpu)),
    ("Self CPU", lambda e, t: duration(e.self_cpu_time_total)),
    ("CPU total %", lambda e, t: _share(e.cpu_time_total, t.cpu)),
    ("CPU total", lambda e, t: duration(e.cpu_time_total)),
    ("CPU time avg", lambda e, t: duration(e.cpu_time_total / e.count)),
    ("Self CUDA", lambda e, t: duration(e.self_device_time_total)),
    ("Self CUDA %", lambda e, t: _share(e.self_device_time_total, t.device)),
    ("CUDA total", lambda e, t: duration(e.device_time_total)),
    ("CUDA time avg", lambda e, t: duration(e.device_time_total / e.count)),
    ("# of Calls", lambda e, t: str(e.count)),
)


def table(
    shown: Sequence[Any], everything: Sequence[Any], sort_by: str | None, limit: int, width: int, header: str | None
) -> str:
    """See EventList.table; percentages are of everything."""
    totals = _Totals(everything)
    if sort_by is not None:
        attribute = sort_by.replace("cuda_time", "device_time")
        shown = sorted(shown, key=lambda e: getattr(e, attribute), reverse=True)
    if limit >= 0:
        shown = shown[:limit]
    rows = [("Name", *(title for title, _ in _COLUMNS))]
    rows += [(_cut(e.key, width), *(cell(e, totals) for _, cell in _COLUMNS)) for e in shown]
    widths = [max(_NARROWEST, *(len(row[i]) for row in rows)) for i in range(len(rows[0]))]
    rule = _GAP.join("-" * w for w in widths)
    lines = [_GAP.join(cell.rjust(w) for cell, w in zip(row, widths, strict=True)) for row in rows]
    total = [f"Self CPU time total: {duration(totals.cpu)}", f"Self CUDA time total: {duration(totals.device)}"]
    top = [header] if header is not None else []
    return "\n".join([*top, rule, lines[0], rule, *lines[1:], rule, *total, ""])


def as_html(events: Sequence[Any]) -> str:
    """Returns a table of all events as HTML, for notebooks."""
    totals = _Totals(events)
    head = "".join(f"<th>{html.escape(title)}</th>" for title in ("Name", *(title for title, _ in _COLUMNS)))
    rows = [(e.key, *(cell(e, totals) for _, cell in _COLUMNS)) for e in events]
    body = "".join(f"<tr>{''.join(f'<td>{html.escape(cell)}</td>' for cell in row)}</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _cut(name: str, width: int) -> str:
    return name if len(name) <= width else name[: width - 3] + "..."


def duration(microseconds: float) -> str:
    """A time with the unit that suits it."""
    for unit, size in (("s", 1e6), ("ms", 1e3)):
        if microseconds >= size:
            return f"{microseconds / size:.3f}{unit}"
    return f"{microseconds:.3f}us"


def _share(part: float, whole: float) -> str:
    return f"{100 * part / whole:.2f}%" if whole else "--"
