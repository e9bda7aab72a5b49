"""The comparison of two runs, on the terminal and as a page."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from torchemu.report import _tables as tables
from torchemu.report import _units as units
from torchemu.report._load import Run
from torchemu.report._page import document
from torchemu.report._sums import Sums
from torchemu.report._svg import element, escaped
from torchemu.report._text import table

_SHOWN = 20  # rows of a part
_DIGITS = 6  # of microseconds, and of shares
_MEANS = {
    "compute": "computing, mean of the ranks",
    "copy": "copies",
    "overlapped": "communication behind others",
    "waiting": "exposed waiting",
    "transfer": "exposed transfer",
    "idle": "idle",
}


@dataclass(frozen=True)
class Row:
    """A figure of both runs; None where a run has none."""

    name: str
    before: float | None
    after: float | None

    @property
    def change(self) -> float:
        """Returns by how much it is more, without what sums of fractions leave."""
        return round((self.after or 0.0) - (self.before or 0.0), _DIGITS)

    @property
    def factor(self) -> str:
        """Returns the second as a multiple of the first."""
        if self.before is None or self.after is None:
            return "only in the second" if self.before is None else "only in the first"
        return f"× {self.after / self.before:.3g}" if self.before else "–"


@dataclass(frozen=True)
class Part:
    """Figures of one kind, and how they are written."""

    title: str
    rows: list[Row]
    write: Callable[[float], str]


def compared(runs: Sequence[tuple[Run, Sums]]) -> list[Part]:
    """Compares two runs. Of collectives, kernels and the critical path those that differ most come first."""
    (a, one), (b, two) = runs
    time = [Row("simulated", a.duration, b.duration)]
    time += [Row(said, _mean(one, what), _mean(two, what)) for what, said in _MEANS.items()]
    return [
        Part("time", time, units.time),
        _joined("collectives, sums of their times", *([(o.name, o.time) for o in s.operations] for s in (one, two))),
        _joined(
            "kernels and copies, sums of their times", *([(k.name, k.time) for k in s.kernels] for s in (one, two))
        ),
        _joined("critical path", *([(f"{p.kind} {p.name}", p.time) for p in s.path_parts] for s in (one, two))),
        Part("use of links", _links(one, two), units.share),
    ]


def _mean(sums: Sums, what: str) -> float:
    return sum(getattr(s, what) for s in sums.shares) / max(len(sums.shares), 1)


def _joined(title: str, before: Iterable[tuple[str, float]], after: Iterable[tuple[str, float]]) -> Part:
    old, new = dict(before), dict(after)
    rows = [Row(name, old.get(name), new.get(name)) for name in {**old, **new}]
    return Part(title, sorted(rows, key=lambda r: (-abs(r.change), r.name))[:_SHOWN], units.time)


def _links(one: Sums, two: Sums) -> list[Row]:
    old, new = ({link.name: link.share for link in s.links if link.size} for s in (one, two))
    rows = [Row(name, old.get(name), new.get(name)) for name in {**old, **new}]
    return sorted(rows, key=lambda r: (-abs(r.change), r.name))[: _SHOWN // 2]


def text(runs: Sequence[tuple[Run, Sums]], parts: Sequence[Part]) -> str:
    """The comparison on the terminal."""
    blocks = [" against ".join(_named(run) for run, _ in runs)]
    for part in parts:
        if part.rows:
            rows = [
                (r.name, _cell(r.before, part), _cell(r.after, part), _signed(r, part), r.factor) for r in part.rows
            ]
            blocks.append(f"{part.title}\n" + table(("", "first", "second", "change", "of the first"), rows))
    return "\n\n".join(blocks)


def _named(run: Run) -> str:
    where = f" on {run.topology}" if run.topology else ""
    return f"{run.name} ({len(run.ranks)} rank{'' if len(run.ranks) == 1 else 's'}{where})"


def _cell(value: float | None, part: Part) -> str:
    return "–" if value is None else part.write(value)


def _signed(row: Row, part: Part) -> str:
    sign = "+" if row.change > 0 else "−" if row.change < 0 else ""
    return sign + part.write(abs(row.change))


def page(runs: Sequence[tuple[Run, Sums]], parts: Sequence[Part]) -> str:
    """The comparison as a page."""
    title = " against ".join(run.name for run, _ in runs)
    about = "; second ".join(escaped(_named(run)) for run, _ in runs)
    sections = [element("h1", escaped(title)) + element("p", f"First {about}. All times are simulated.")]
    sections += [_section(part) for part in parts if part.rows]
    return document(f"{title}: torchemu report", sections, {})


def _section(part: Part) -> str:
    most = max(abs(r.change) for r in part.rows) or 1.0
    rows: list[list[tables.Cell]] = []
    for r in part.rows:
        colour = "var(--exposed)" if r.change > 0 else "var(--compute)"
        change = tables.Number(r.change, lambda _, r=r: _signed(r, part))  # type: ignore[misc]
        rows.append([escaped(r.name), *(_number(v, part) for v in (r.before, r.after)),
                     tables.bar(abs(r.change) / most, colour), change, r.factor])  # fmt: skip
    header = ("", "first#", "second#", "", "change#", "of the first#")
    return tables.section(part.title[0].upper() + part.title[1:], "", tables.table(header, rows))


def _number(value: float | None, part: Part) -> tables.Cell:
    return "–" if value is None else tables.Number(value, part.write)
