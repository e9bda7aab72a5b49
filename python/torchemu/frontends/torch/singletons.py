"""Classes of installed packages that have one instance in a process: a logger, say, which who asks for one is given.

A package is loaded once, so its class would have one for all ranks. What such a class keeps its instances in, an
attribute whose name says so, is known by name, and by what it holds at first: nothing.
"""

from __future__ import annotations

import re
import types
from collections.abc import Iterable, Sequence
from typing import Any

_NAME = re.compile("instance|singleton", re.IGNORECASE)
_EMPTY: tuple[Any, ...] = (None, {})


def names_in(codes: Iterable[types.CodeType]) -> frozenset[str]:
    """Returns the names in functions, of the code of each, that say that they are of instances."""
    return frozenset(name for code in codes for name in code.co_names if _NAME.search(name))


def kept_by(classes: Sequence[type], names: frozenset[str]) -> list[tuple[type, str]]:
    """Returns the classes that keep instances, and in which attribute.

    Args:
        classes: those of a module.
        names: what names_in returns for its functions.
    """
    return [
        (kind, name)
        for kind in classes
        for name, value in vars(kind).items()
        if name in names and type(value) in (dict, type(None)) and value in _EMPTY
    ]


def added(before: Any, after: Any) -> Any:
    """Returns what has come to an attribute; None for nothing."""
    if type(after) is not dict:
        return after if before is None else None
    old = before if type(before) is dict else {}
    return {key: value for key, value in after.items() if key not in old} or None


def joined(value: Any, more: Any) -> Any:
    """Returns what an attribute is that gets more where there is none."""
    if type(more) is dict and type(value) is dict:
        return {**more, **value}
    return more if value is None else value
