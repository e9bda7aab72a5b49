"""Numbers as people read them."""

from __future__ import annotations


def time(microseconds: float) -> str:
    """A time with the unit that suits it."""
    for unit, size in (("s", 1e6), ("ms", 1e3), ("µs", 1.0)):
        if abs(microseconds) >= size:
            return f"{_three(microseconds / size)} {unit}"
    return f"{_three(microseconds * 1e3)} ns" if microseconds else "0"


def size(count: float) -> str:
    """Bytes with the unit that suits them."""
    for unit, scale in (("TiB", 1 << 40), ("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if count >= scale:
            return f"{_three(count / scale)} {unit}"
    return f"{count:g} B"


def share(part: float) -> str:
    """A part of 1."""
    return f"{100 * part:.1f} %" if part >= 0.001 or part == 0 else "<0.1 %"


def rate(gigabytes: float) -> str:
    """A bandwidth in GB/s."""
    return f"{_three(gigabytes)} GB/s" if gigabytes else "–"


def _three(x: float) -> str:
    """Three digits, but all of those before the point."""
    digits = max(0, 2 - len(str(int(abs(x)))) + 1) if abs(x) >= 1 else 3
    return f"{x:.{digits}f}"
