"""Timing of functions, in simulated time."""

from __future__ import annotations

import csv
import importlib
import os
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from torchemu import runtime
from torchemu.bridge.binding import go
from torchemu.bridge.handles import Handle
from torchemu.frontends.triton._placeholders import placeholders

_REPEATS = 5


def do_bench(
    fn: Callable[[], Any],
    warmup: int = 25,
    rep: int = 100,
    grad_to_none: Any = None,
    quantiles: Sequence[float] | None = None,
    return_mode: str = "mean",
) -> Any:
    """The simulated milliseconds of a function that launches kernels. Repetitions take the same time: there are few.

    Args:
        fn: the function.
        warmup, rep: not needed here.
        quantiles: those of the times that are wanted; None for one number.
        return_mode: min, max, mean, median or all.
    """
    context = runtime.current()
    fn()
    times = []
    for _ in range(_REPEATS):
        start = Handle(go.StreamRecord(context.stream))
        fn()
        stop = Handle(go.StreamRecord(context.stream))
        context.synchronize()
        context.wait(stop.number)
        times.append((go.EventTime(stop.number) - go.EventTime(start.number)) / 1e9)
    if quantiles is not None:
        found = np.quantile(times, quantiles).tolist()
        return found[0] if len(found) == 1 else found
    if return_mode == "all":
        return times
    return float(getattr(np, return_mode)(times))


do_bench_cudagraph = do_bench


def assert_close(x: Any, y: Any, atol: float | None = None, rtol: float | None = None, err_msg: str = "") -> None:
    """Compares two arrays or tensors.

    Raises:
        AssertionError: they differ.
    """
    a, b = (np.asarray(v.cpu().float().numpy() if hasattr(v, "cpu") else v) for v in (x, y))
    np.testing.assert_allclose(
        a, b, atol=1e-2 if atol is None else atol, rtol=0 if rtol is None else rtol, err_msg=err_msg
    )


class Benchmark:
    """A table of times: a row for each value of some arguments, a column for each value of another one.

    Args:
        x_names: the arguments that have one value in a row.
        x_vals: their values: one for all of them, or a tuple.
        line_arg: the argument that has one value in a column.
        line_vals, line_names: its values, and what they are called.
        plot_name: of the table.
        args: the other arguments.
        others: how it would be drawn: xlabel, ylabel, x_log, y_log, styles.
    """

    def __init__(
        self,
        x_names: Sequence[str],
        x_vals: Sequence[Any],
        line_arg: str,
        line_vals: Sequence[Any],
        line_names: Sequence[str],
        plot_name: str,
        args: dict[str, Any],
        **others: Any,
    ) -> None:
        self.x_names, self.x_vals = list(x_names), list(x_vals)
        self.line_arg, self.line_vals, self.line_names = line_arg, list(line_vals), list(line_names)
        self.plot_name, self.args, self.others = plot_name, args, others

    def rows(self, fn: Callable[..., Any], given: dict[str, Any]) -> list[list[float]]:
        """Returns the table: arguments, and what the function gives, or the first of several numbers."""
        table = []
        for x in self.x_vals:
            values = list(x) if isinstance(x, tuple | list) else [x] * len(self.x_names)
            row = [float(v) if isinstance(v, int) else v for v in values]
            for line in self.line_vals:
                y = fn(**dict(zip(self.x_names, values, strict=True)), **{self.line_arg: line}, **self.args, **given)
                row.append(float(y[0] if isinstance(y, tuple | list) else y))
            table.append(row)
        return table


class Mark:
    """A function that fills tables; see perf_report."""

    def __init__(self, fn: Callable[..., Any], benchmarks: Any) -> None:
        self.fn, self.benchmarks = fn, benchmarks

    def run(
        self,
        show_plots: bool = False,
        print_data: bool = False,
        save_path: str = "",
        return_df: bool = False,
        **kw: Any,
    ) -> Any:
        """Fills the tables. Nothing is drawn.

        Args:
            show_plots: not needed here.
            print_data: print them.
            save_path: a folder for them, as CSV; empty for none.
            return_df: return them, as data frames of pandas.
            kw: further arguments of the function.
        """
        several = isinstance(self.benchmarks, tuple | list)
        frames = []
        for table in self.benchmarks if several else [self.benchmarks]:
            names, rows = table.x_names + table.line_names, table.rows(self.fn, kw)
            if print_data:
                print(f"{table.plot_name}:")
                _print_table(names, rows)
            if save_path:
                with open(os.path.join(save_path, f"{table.plot_name}.csv"), "w", newline="") as file:
                    csv.writer(file).writerows([names, *rows])
            if return_df:
                frames.append(importlib.import_module("pandas").DataFrame(rows, columns=names))
        if not return_df:
            return None
        return frames if several else frames[0]


def _print_table(names: list[str], rows: list[list[Any]]) -> None:
    cells = [["", *names]]
    for i, row in enumerate(rows):
        cells.append([str(i), *[f"{v:.6f}" if isinstance(v, float) and v % 1 else str(v) for v in row]])
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    for row in cells:
        print("  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)))


def perf_report(benchmarks: Any) -> Callable[[Callable[..., Any]], Mark]:
    """Makes a function one that fills tables: one, or several.

    Args:
        benchmarks: a Benchmark, or several.
    """
    return lambda fn: Mark(fn, benchmarks)


__getattr__ = placeholders("triton.testing")
