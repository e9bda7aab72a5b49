"""The table of the collectives that a run performed, in nccl-tests' terms."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

_HEADER = ("ccl", "collective", "algorithm", "ranks", "bytes", "time (us)", "algbw (GB/s)", "busbw (GB/s)")
_TEXT_COLUMNS = 3  # the first ones, aligned to the left


def table(collectives: Sequence[dict[str, Any]]) -> str:
    """One line for each collective; times are simulated. Runs of equal lines are counted, not repeated. Where one says
    with which ccl.yaml it was run, there is a column for that."""
    if not collectives:
        return "no collective was run"
    rows = [_HEADER, *(_row(c) for c in collectives)]
    widths = [max(len(row[i]) for row in rows) for i in range(len(_HEADER))]
    first = 0 if any("ccl" in c for c in collectives) else 1
    lines = [_line(row, widths, first) for row in rows]
    return "\n".join(_counted(lines))


def _row(c: dict[str, Any]) -> tuple[str, ...]:
    microseconds = (c["end"] - c["start"]) / 1e6
    return (
        c.get("ccl", ""),
        c["collective"],
        c["algorithm"],
        str(c["ranks"]),
        str(c["bytes"]),
        f"{microseconds:.3f}",
        f"{c['algbw'] / 1e9:.3f}",
        f"{c['busbw'] / 1e9:.3f}",
    )


def _line(row: Sequence[str], widths: Sequence[int], first: int) -> str:
    cells = [
        cell.ljust(width) if i < _TEXT_COLUMNS else cell.rjust(width)
        for i, (cell, width) in enumerate(zip(row, widths, strict=True))
    ]
    return "  ".join(cells[first:]).rstrip()


def _counted(lines: Sequence[str]) -> list[str]:
    counted: list[str] = []
    start = 0
    for i in range(1, len(lines) + 1):
        if i == len(lines) or lines[i] != lines[start]:
            times = i - start
            counted.append(lines[start] + (f"  × {times}" if times > 1 else ""))
            start = i
    return counted
