"""The table that is printed, in the columns of nccl-tests."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Sequence

from bandwidth.options import Options
from bandwidth.sweep import Result, Row, Sweep


class Table:
    """Prints what nccl-tests prints, and to a terminal how far it is."""

    def __init__(self, options: Options) -> None:
        self._options = options
        self._rows: list[Row] = []
        self._total = 0

    def header(self, sweep: Sweep, devices: Sequence[str]) -> None:
        """Prints what stands above the rows."""
        o, self._total = self._options, sweep.total
        step = f"{o.step}(bytes)" if o.step else f"{o.factor}(factor)"
        print(
            f"# nThread {o.threads} nGpus {sweep.world // o.threads} minBytes {o.begin} maxBytes {o.end} step: {step} "
            f"warmup iters: {o.warmup} iters: {o.iters} agg iters: 1 validation: {int(o.check)} graph: 0"
        )
        print("#\n# Using devices")
        for rank, device in enumerate(devices):
            print(
                f"#  Rank {rank:2} Group  0 Pid {100_000 + rank:6} on {'torchemu':>10} device {rank:2} [0x00] {device}"
            )
        self._progress()

    def row(self, row: Row) -> None:
        """A line of the table, and a title where the collective is another one."""
        self._clear()
        if not self._rows or self._rows[-1].collective is not row.collective:
            self._title(row.collective.name)
        self._rows.append(row)
        c, o = row.collective, self._options
        redop, root = o.op if c.reduces else "none", o.root if c.rooted else -1
        cells = "".join(self._cells(r) for r in row.results)
        print(f"{row.size:12}  {row.count:12}  {o.dtype:>8}  {redop:>6}  {root:6}{cells}", flush=True)
        self._progress()

    @staticmethod
    def _title(name: str) -> None:
        blank = "# " + "  ".join(" " * width for width in (10, 12, 8, 6, 6))
        columns, units = ("time", "algbw", "busbw", "#wrong"), ("(us)", "(GB/s)", "(GB/s)", "")
        first = ("size", "count", "type", "redop", "root"), ("(B)", "(elements)", "", "", "")
        print(f"#\n# {name}\n#\n{blank}           out-of-place                       in-place          ")
        for left, right in zip(first, (columns, units), strict=True):
            start = "# {:>10}  {:>12}  {:>8}  {:>6}  {:>6}".format(*left)
            print(start + 2 * "  {:>7}  {:>6}  {:>6} {:>6}".format(*right))

    @staticmethod
    def _cells(r: Result) -> str:
        digits = 0 if r.microseconds >= 10_000 else 1 if r.microseconds >= 100 else 2
        errors = "N/A" if r.wrong is None else str(r.wrong)
        return f"  {r.microseconds:7.{digits}f}  {r.algbw:6.2f}  {r.busbw:6.2f}  {errors:>5}"

    def footer(self) -> int:
        """Prints what stands below the rows; returns how many elements were wrong."""
        self._clear()
        results = [r for row in self._rows for r in row.results]
        errors = sum(r.wrong or 0 for r in results)
        mean = sum(r.busbw for r in results) / max(len(results), 1)
        print(f"# Out of bounds values : {errors} {'FAILED' if errors else 'OK'}")
        print(f"# Avg bus bandwidth    : {mean:g}\n#")
        return errors

    def rows(self) -> list[Row]:
        """All of them so far."""
        return self._rows

    def _progress(self) -> None:
        done, width = len(self._rows), 30
        if sys.stderr.isatty() and done < self._total:
            bar = "█" * (width * done // self._total)
            last = f"{self._rows[-1].collective.name}, {self._rows[-1].size} bytes" if self._rows else "…"
            line = f"{bar:░<{width}} {done}/{self._total}  {last}"
            fits = shutil.get_terminal_size().columns - 1  # a line that went on in the next one could not be cleared
            print(f"\r{line[:fits]}", end="", file=sys.stderr, flush=True)

    @staticmethod
    def _clear() -> None:
        if sys.stderr.isatty():
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)
