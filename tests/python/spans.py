"""Spans of traces."""

from __future__ import annotations


def beside(one: dict[str, float], other: dict[str, float]) -> bool:
    """Says whether two spans have some time in common."""
    return one["ts"] < other["ts"] + other["dur"] and other["ts"] < one["ts"] + one["dur"]
