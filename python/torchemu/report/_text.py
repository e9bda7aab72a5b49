"""The report on the terminal."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from torchemu.report import _units as units
from torchemu.report._analysis import Collective, KernelSum, Link, Operation, Shares
from torchemu.report._critical import Part
from torchemu.report._load import Run

_ALL_RANKS = 16  # more are summed up
_LEAST_TELLING = (
    "ranks",
    "no.",
    "group",
    "algorithm",
    "busbw",
    "bytes",
)  # of the slowest collectives, left out in turn

_WORDS = ("", "what", "algorithm", "group", "called at")  # titles of columns that are not numbers


@dataclass(frozen=True)
class Terminal:
    """Words for a terminal.

    Attributes:
        width: characters of a line; None for any number.
        folder: places in files below it are told from there on.
    """

    width: int | None = None
    folder: str = ""

    def text(
        self,
        run: Run,
        shares: Sequence[Shares],
        operations: Sequence[Operation],
        slowest: Sequence[Collective],
        links: Sequence[Link],
        kernels: Sequence[KernelSum] = (),
        path: Sequence[Part] = (),
    ) -> str:
        """All of it."""
        where = f" on {run.topology}" if run.topology else ""
        failed = [f"the run failed, {run.failure}; what had not ended then is not shown"] if run.failure else []
        if run.is_empty:
            return "\n\n".join([f"no device did anything{where} while this was recorded", *failed])
        parts = [f"{_count(len(run.ranks), 'rank')}{where}, {units.time(run.duration)} simulated", *failed]
        if run.waits:
            parts.append("what hangs\n" + self._waits(run))
        title = self._cut("time of the devices; waiting and transfer are exposed")
        parts.append(f"{title}\n{self._shares(shares, run.duration)}")
        if operations:
            parts.append("collectives\n" + self._operations(operations))
            parts.append("slowest collectives\n" + self._slowest(slowest))
        else:
            parts.append("no collectives")
        if kernels:
            parts.append("kernels and copies\n" + self._kernels(kernels))
        if path:
            parts.append("critical path\n" + self._path(path))
        if any(link.size for link in links):
            parts.append("busiest links\n" + self._links(links))
        return "\n\n".join(parts)

    def _waits(self, run: Run) -> str:
        """Not cut: the end of a line says who is missing."""
        return "\n".join(f"  {ranks_named(w['ranks'])}: {w['on']}".replace(self.folder, "") for w in run.waits)

    def _shares(self, shares: Sequence[Shares], duration: float) -> str:
        """Times and shares of it; where that is too wide, shares."""
        header = ("", "compute", "copies", "communication", "waiting", "transfer", "idle")
        named = _named(shares)
        full = table(header, [(name, *_cells(s, duration)) for name, s in named])
        if self._fits(full):
            return full
        short = [title.replace("communication", "comm.") for title in header]
        return self._cut(table(short, [(name, *_portions(s, duration)) for name, s in named]))

    def _operations(self, operations: Sequence[Operation]) -> str:
        header = ("", "calls", "time", "bytes", "waited for the last rank")
        rows = [(o.name, str(o.calls), units.time(o.time), units.size(o.size), units.time(o.skew)) for o in operations]
        return self._cut(table(header, rows))

    def _slowest(self, slowest: Sequence[Collective]) -> str:
        header = ("", "algorithm", "group", "no.", "ranks", "bytes", "time", "busbw", "waited", "called at")
        rows = [
            (
                c.name, c.algorithm, c.group, str(c.number), str(c.ranks), units.size(c.size), units.time(c.time),
                units.rate(c.busbw), units.time(c.skew), c.site.removeprefix(self.folder),
            )
            for c in slowest
        ]  # fmt: skip
        for i in range(len(_LEAST_TELLING) + 1):
            kept = [at for at, title in enumerate(header) if title not in _LEAST_TELLING[:i]]
            shown = table([header[at] for at in kept], [[row[at] for at in kept] for row in rows])
            if self._fits(shown):
                return shown
        return self._cut(shown)

    def _kernels(self, kernels: Sequence[KernelSum]) -> str:
        header = ("", "calls", "time", "mean", "longest", "memory traffic")
        rows = [
            (k.name, str(k.calls), *(units.time(t) for t in (k.time, k.time / k.calls, k.longest)), units.size(k.size))
            for k in kernels
        ]
        return self._cut(table(header, rows))

    def _path(self, path: Sequence[Part]) -> str:
        whole = sum(p.time for p in path)
        header = ("", "what", "times", "time", "of it")
        rows = [(p.kind, p.name, str(p.count), units.time(p.time), units.share(p.time / whole)) for p in path]
        return self._cut(table(header, rows))

    def _links(self, links: Sequence[Link]) -> str:
        header = ("", "carried", "of its bandwidth")
        rows = [(link.name, units.size(link.size), units.share(link.share)) for link in links if link.size]
        return self._cut(table(header, rows))

    def _fits(self, lines: str) -> bool:
        return self.width is None or all(len(line) <= self.width for line in lines.splitlines())

    def _cut(self, lines: str) -> str:
        """The lines, without what is beyond the width."""
        if self._fits(lines) or self.width is None:
            return lines
        most = self.width
        return "\n".join(line if len(line) <= most else line[: most - 1] + "…" for line in lines.splitlines())


def _count(n: int, what: str) -> str:
    return f"{n} {what}{'' if n == 1 else 's'}"


def ranks_named(ranks: Sequence[int]) -> str:
    """Names ranks: "rank 3", "ranks 0-2, 5"."""
    spans: list[list[int]] = []
    for rank in sorted(ranks):
        if spans and rank == spans[-1][1] + 1:
            spans[-1][1] = rank
        else:
            spans.append([rank, rank])
    listed = ", ".join(str(a) if a == b else f"{a}-{b}" for a, b in spans)
    return f"rank{'s' if len(ranks) > 1 else ''} {listed}"


def _named(shares: Sequence[Shares]) -> list[tuple[str, Shares]]:
    """All ranks; of many, those that tell most; where all are alike, one of them."""
    if len(shares) <= _ALL_RANKS:
        return [(f"rank {s.rank}", s) for s in shares]
    ordered = sorted(shares, key=lambda s: (s.exposed, s.rank))
    least, median, most = ordered[0], ordered[len(ordered) // 2], ordered[-1]
    if units.time(least.exposed) == units.time(most.exposed):
        return [(f"all ranks alike, as rank {least.rank}", least)]
    chosen = [("least exposed", least), ("median", median), ("most exposed", most)]
    return [(f"{what}: rank {s.rank}", s) for what, s in chosen]


def _parts(s: Shares) -> tuple[float, ...]:
    return s.compute, s.copy, s.communication, s.waiting, s.transfer, s.idle


def _cells(s: Shares, duration: float) -> list[str]:
    portions = zip(_parts(s), _portions(s, duration), strict=True)
    return [f"{units.time(t)} {portion:>7}" for t, portion in portions]


def _portions(s: Shares, duration: float) -> list[str]:
    return [f"{100 * t / duration if duration else 0:.1f} %" for t in _parts(s)]


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Columns: words are aligned to the left, and numbers to the right."""
    widths = [max(len(row[i]) for row in (header, *rows)) for i in range(len(header))]
    lines = []
    for row in (header, *rows):
        cells = [
            cell.ljust(width) if title in _WORDS else cell.rjust(width)
            for title, cell, width in zip(header, row, widths, strict=True)
        ]
        lines.append("  " + "  ".join(cells).rstrip())
    return "\n".join(lines)
