"""Switches in the environment of a rank."""

from __future__ import annotations

import os
import re

_YES = {"1", "true", "yes", "on", "y"}
_UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}


def switch(name: str, default: bool = False) -> bool:
    """Says whether a variable is set to something that means yes."""
    value = os.environ.get(name)
    return default if value is None else value.strip().lower() in _YES


def number(name: str, default: int, least: int = 0) -> int:
    """Returns a variable's number, which is no less than the least.

    Raises:
        ValueError: it is none.
    """
    value = os.environ.get(name)
    if value is None:
        return default
    try:
        return max(least, int(value))
    except ValueError:
        raise ValueError(f"{name} is to be a whole number, not {value!r}") from None


def size(name: str, default: int) -> int:
    """Returns a variable's number of bytes, such as 4G.

    Raises:
        ValueError: it is none.
    """
    value = os.environ.get(name)
    if value is None:
        return default
    found = re.fullmatch(r"(\d+)([kmgt]?)(?:i?b)?", value.strip().lower())
    if found is None:
        raise ValueError(f"{name} is to be a number of bytes, such as 4294967296 or 4G, not {value!r}")
    return int(found[1]) * _UNITS[found[2]]


def require_sdma(what: str) -> None:
    """Makes sure that the program has asked for SDMA.

    Raises:
        RuntimeError: it has not.
    """
    if not switch("MORI_ENABLE_SDMA"):
        got = os.environ.get("MORI_ENABLE_SDMA")
        raise RuntimeError(f"{what} requires MORI_ENABLE_SDMA=1 in the process environment (got {got!r})")


MOST_CHANNELS = 8


def channels() -> int:
    """Returns how many SDMA queues a pair of devices uses."""
    return min(MOST_CHANNELS, number("MORI_SDMA_NUM_CHANNELS", 2, least=1))
