"""Classes of installed packages that have one instance in a process: a logger, say, which who asks for one is given.

A package is loaded once, so its class would have one for all ranks. What such a class keeps its instances in, an
attribute whose name says so, is known by name, and by what it holds at first: nothing. So is a dict of the class that
its methods make the ``__dict__`` of each instance.
"""

from __future__ import annotations

import dis
import re
import types
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

_NAME = re.compile("instance|singleton", re.IGNORECASE)
_EMPTY: tuple[Any, ...] = (None, {})


def names_in(codes: Iterable[types.CodeType]) -> frozenset[str]:
    """Returns the names in functions, of the code of each, that say that they are of instances, or that these share."""
    found: set[str] = set()
    for code in codes:
        found.update(name for name in code.co_names if _NAME.search(name))
        if "__dict__" in code.co_names:
            found.update(_made_attributes(code))
    return frozenset(found)


def _made_attributes(code: types.CodeType) -> Iterator[str]:
    """Yields the attributes that a function makes the attributes of an object: ``self.__dict__ = cls.state``."""
    does = list(dis.get_instructions(code))
    for read, _, stored in zip(does, does[1:], does[2:], strict=False):
        if (read.opname, stored.opname, stored.argval) == ("LOAD_ATTR", "STORE_ATTR", "__dict__"):
            yield read.argval


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
