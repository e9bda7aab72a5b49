"""Files and tables for the results of ``torchemu sweep``."""

from __future__ import annotations

import csv
import importlib
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Self

from torchemu.launch import progress

MEASURED = ("size", "count", "algorithm", "time_us", "algbw", "busbw")
"""Columns of what was measured; the others say of what."""

_WRITTEN = (".csv", ".parquet")


def check(output: str, plot: str | None) -> None:
    """Finds what would be wrong with the files before the time is spent on what is in them.

    Raises:
        ValueError: a name says nothing of the format, or there is no such folder.
        ImportError: what the format needs is not installed.
    """
    if Path(output).suffix not in _WRITTEN:
        raise ValueError(f"-o {output}: the name must end in one of {', '.join(_WRITTEN)}")
    for flag, file in (("-o", output), ("--plot", plot)):
        if file and not Path(file).absolute().parent.is_dir():
            raise ValueError(f"{flag} {file}: there is no folder {Path(file).parent}")
    try:
        if Path(output).suffix == ".parquet":
            importlib.import_module("pyarrow")
        if plot:
            importlib.import_module("matplotlib")
    except ImportError as error:
        raise ImportError(f"{error.name} is not installed: pip install 'torchemu[sweep]'") from None


class Journal:
    """Results as they come, in a file beside the output, from which an interrupted sweep goes on."""

    def __init__(self, output: str) -> None:
        self._file = Path(f"{output}.part")
        self.rows: dict[str, dict[str, Any]] = {}
        if not self._file.exists():
            return
        whole = b""
        for line in self._file.read_bytes().splitlines(keepends=True):
            try:
                key, row = json.loads(line)
            except ValueError:
                break  # the interrupt came while it was written
            self.rows[key] = row
            whole += line
        self._file.write_bytes(whole)

    def __enter__(self) -> Self:
        self._out = self._file.open("a", encoding="utf-8")
        return self

    def __exit__(self, *_: object) -> None:
        self._out.close()
        if not self.rows:
            self.remove()

    def note(self, key: str, row: dict[str, Any]) -> None:
        """Adds a result."""
        self.rows[key] = row
        self._out.write(json.dumps([key, row]) + "\n")
        self._out.flush()

    def remove(self) -> None:
        """Removes the file: all is in the output."""
        self._file.unlink(missing_ok=True)


class Progress(progress.Line):
    """A line that says how much of a sweep is done."""

    def __init__(self, total: int, done: int) -> None:
        super().__init__()
        self._total, self._done = total, done

    def step(self, about: dict[str, Any]) -> None:
        """Says that one more is done."""
        self._done += 1
        what = " ".join(str(about[k]) for k in ("collective", "topology", "ranks", "requested", "requested_size"))
        self.write(f"{progress.bar(self._done, self._total)} {self._done}/{self._total}  {what}")


def write(output: str, rows: Sequence[dict[str, Any]]) -> None:
    """Writes all results, a row each."""
    if Path(output).suffix == ".csv":
        with Path(output).open("w", newline="", encoding="utf-8") as file:
            table = csv.DictWriter(file, list(rows[0]))
            table.writeheader()
            table.writerows(rows)
        return
    pyarrow, parquet = (importlib.import_module(name) for name in ("pyarrow", "pyarrow.parquet"))
    parquet.write_table(pyarrow.Table.from_pylist(list(rows)), output)


def _places(rows: Sequence[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    """Rows by all that tells them apart but algorithm and size."""
    places: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        about = {k: v for k, v in row.items() if k not in MEASURED and k not in ("requested", "dtype")}
        collective, topology, ranks = (about.pop(k) for k in ("collective", "topology", "ranks"))
        settings = "".join(f", {k}={v}" for k, v in about.items())
        places.setdefault(f"{collective}, {ranks} ranks on {topology}{settings}", []).append(row)
    return places


def winners(rows: Sequence[dict[str, Any]]) -> Iterator[str]:
    """Yields lines that say which algorithm is the fastest from which size on."""
    for place, here in _places(rows).items():
        yield place
        last = None
        for size in sorted({row["size"] for row in here}):
            best = min((row for row in here if row["size"] == size), key=lambda row: row["time_us"])
            if best["algorithm"] != last:
                last = best["algorithm"]
                yield f"  from {size:>12} bytes on  {last}, {best['time_us']:g} us"


def plot(file: str, rows: Sequence[dict[str, Any]]) -> None:
    """Draws time over size, an algorithm a line, and the time of the largest size over what-if figures, with the places
    that no other beats in both."""
    importlib.import_module("matplotlib").use("agg")
    plt = importlib.import_module("matplotlib.pyplot")

    places = _places(rows)
    settings = [k for k in rows[0] if k not in (*MEASURED, "collective", "topology", "ranks", "dtype", "requested")]
    count = len(places) + bool(settings)
    figure, panels = plt.subplots(count, squeeze=False, layout="constrained", figsize=(9, 4.5 * count))
    for (place, here), axes in zip(places.items(), panels[:, 0], strict=False):
        for algorithm in dict.fromkeys(row["requested"] for row in here):
            line = sorted((row["size"], row["time_us"]) for row in here if row["requested"] == algorithm)
            axes.plot(*zip(*line, strict=True), marker="o", markersize=3, label=algorithm)
        axes.set(title=place, xlabel="size (bytes)", ylabel="time (µs)", xscale="log", yscale="log")
        axes.legend(frameon=False, fontsize=8)
    if settings:
        _plot_pareto(panels[-1, 0], rows, settings[0])
    figure.savefig(file, dpi=150)
    plt.close(figure)


def pareto(points: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """The points of which no other is better in one figure and not worse in the other; less is better in both."""
    front: list[tuple[float, float]] = []
    for cost, time in sorted(points):
        if not front or time < front[-1][1]:
            front.append((cost, time))
    return front


def _plot_pareto(axes: Any, rows: Sequence[dict[str, Any]], key: str) -> None:
    largest = max(row["size"] for row in rows)
    points = [
        (row[key], row["time_us"]) for row in rows if row["size"] == largest and isinstance(row[key], int | float)
    ]
    if not points:
        return
    axes.plot(*zip(*points, strict=True), "o", markersize=3, alpha=0.5)
    axes.plot(*zip(*pareto(points), strict=True), "-", label="nothing is better in both")
    axes.set(title=f"{largest} bytes", xlabel=key, ylabel="time (µs)", yscale="log")
    axes.legend(frameon=False, fontsize=8)
