"""Plots of time and bandwidth over size."""

from __future__ import annotations

import math
from collections.abc import Sequence

from bandwidth.sweep import Row


def plot(rows: Sequence[Row], file: str, title: str) -> None:
    """Draws time and bus bandwidth, out of place, over the size into a PNG, or what else the file's name ends in.

    Raises:
        ImportError: there is no matplotlib.
    """
    import matplotlib

    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(13, 5.2), layout="constrained")
    figure.suptitle(title, fontsize=13)
    for i, (points, names) in enumerate(curves(rows).items()):
        sizes, times, bandwidths = zip(*points, strict=True)
        style = {"color": plt.colormaps["tab10"](i % 10), "marker": "osD^v<>pX"[i % 9], "markersize": 5}
        left.plot(sizes, times, **style)
        right.plot(sizes, bandwidths, label=", ".join(names), **style)
    for axes, what in ((left, "time (µs)"), (right, "bus bandwidth (GB/s)")):
        axes.set_xscale("log", base=2)
        axes.set(xlabel="size", ylabel=what)
        axes.xaxis.set_major_formatter(lambda size, _: readable(size))
        axes.grid(True, alpha=0.25)
        axes.spines[["top", "right"]].set_visible(False)
    left.set_yscale("log")
    left.yaxis.set_major_formatter(lambda time, _: f"{time:g}")
    right.set_ylim(bottom=0)
    if right.lines:
        right.legend(frameon=False, loc="upper left", fontsize=10)
    figure.savefig(file, dpi=150)
    plt.close(figure)


def curves(rows: Sequence[Row]) -> dict[tuple[tuple[int, float, float], ...], list[str]]:
    """The points of each curve (size, time, bus bandwidth), and the collectives that have it: several may be alike."""
    points: dict[str, list[tuple[int, float, float]]] = {}
    for row in rows:
        result = row.results[0]
        if row.size and result.microseconds:
            points.setdefault(row.collective.name, []).append((row.size, result.microseconds, result.busbw))
    alike: dict[tuple[tuple[int, float, float], ...], list[str]] = {}
    for name, curve in points.items():
        alike.setdefault(tuple(curve), []).append(name)
    return alike


def readable(size: float) -> str:
    """A size with the unit that suits it."""
    power = min(int(math.log2(size)) // 10, 3) if size >= 1 else 0
    return f"{size / (1 << 10 * power):.3g} {('B', 'KiB', 'MiB', 'GiB')[power]}"
