"""The report on the terminal."""

from __future__ import annotations

from collections.abc import Sequence

from torchemu.report import _units as units
from torchemu.report._analysis import Collective, Link, Operation, Shares
from torchemu.report._load import Run

_ALL_RANKS = 16  # more are summed up


def text(
    run: Run,
    shares: Sequence[Shares],
    operations: Sequence[Operation],
    slowest: Sequence[Collective],
    links: Sequence[Link],
) -> str:
    """All of it."""
    where = f" on {run.topology}" if run.topology else ""
    parts = [f"{_count(len(run.ranks), 'rank')}{where}, {units.time(run.duration)} simulated"]
    parts.append("time of the devices\n" + _shares(shares, run.duration))
    if operations:
        parts.append("collectives\n" + _operations(operations))
        parts.append("slowest collectives\n" + _slowest(slowest))
    if links:
        parts.append("busiest links\n" + _links(links))
    return "\n\n".join(parts)


def _count(n: int, what: str) -> str:
    return f"{n} {what}{'' if n == 1 else 's'}"


def _shares(shares: Sequence[Shares], duration: float) -> str:
    header = ("", "compute", "copies", "communication", "of it exposed", "idle")
    if len(shares) <= _ALL_RANKS:
        rows = [(f"rank {s.rank}", *_cells(s, duration)) for s in shares]
    else:
        ordered = sorted(shares, key=lambda s: (s.exposed, s.rank))
        chosen = [("least exposed", ordered[0]), ("median", ordered[len(ordered) // 2]), ("most exposed", ordered[-1])]
        rows = [(f"{what}: rank {s.rank}", *_cells(s, duration)) for what, s in chosen]
    return table(header, rows, left=1)


def _cells(s: Shares, duration: float) -> tuple[str, ...]:
    parts = (s.compute, s.copy, s.communication, s.exposed, s.idle)
    return tuple(f"{units.time(t)} {100 * t / duration if duration else 0:5.1f} %" for t in parts)


def _operations(operations: Sequence[Operation]) -> str:
    header = ("", "calls", "time", "bytes", "waited for the last rank")
    rows = [(o.name, str(o.calls), units.time(o.time), units.size(o.size), units.time(o.skew)) for o in operations]
    return table(header, rows, left=1)


def _slowest(slowest: Sequence[Collective]) -> str:
    header = ("", "algorithm", "group", "no.", "ranks", "bytes", "time", "busbw", "waited", "called at")
    rows = [
        (
            c.name, c.algorithm, c.group, str(c.number), str(c.ranks), units.size(c.size), units.time(c.time),
            units.rate(c.busbw), units.time(c.skew), c.site,
        )
        for c in slowest
    ]  # fmt: skip
    return table(header, rows, left=3)


def _links(links: Sequence[Link]) -> str:
    header = ("", "carried", "of its bandwidth")
    return table(header, [(link.name, units.size(link.size), units.share(link.share)) for link in links], left=1)


def table(header: Sequence[str], rows: Sequence[Sequence[str]], left: int) -> str:
    """Columns, of which so many are aligned to the left, and so is the last where it is called at."""
    widths = [max(len(row[i]) for row in (header, *rows)) for i in range(len(header))]
    lines = []
    for row in (header, *rows):
        cells = [
            cell.ljust(w) if i < left or header[i] == "called at" else cell.rjust(w)
            for i, (cell, w) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append("  " + "  ".join(cells).rstrip())
    return "\n".join(lines)
