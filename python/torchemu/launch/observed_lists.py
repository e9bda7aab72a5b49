"""Lists of loggers and handlers that tell before they change."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable
from typing import Any


class ToldList(list[Any]):
    """A list of handlers or filters.

    Args:
        values: what is in it.
        before: is called before the list changes, with the list; answers with the lists that are to change alike.
    """

    __slots__ = ("before",)

    def __init__(self, values: Iterable[Any], before: Callable[[ToldList], Iterable[ToldList]]) -> None:
        super().__init__(values)
        self.before = before

    def __reduce__(self) -> tuple[type[list[Any]], tuple[list[Any]]]:
        """Copies and pickles are plain lists."""
        return list, (list(self),)


def _telling(name: str) -> Callable[..., Any]:
    plain = getattr(list, name)

    def change(self: ToldList, *args: Any, **kwargs: Any) -> Any:
        for other in self.before(self):
            with contextlib.suppress(ValueError, IndexError):  # it has other values
                plain(other, *args, **kwargs)
        return plain(self, *args, **kwargs)

    return change


for _name in (
    *("append", "extend", "insert", "remove", "pop", "clear", "sort", "reverse"),
    *("__setitem__", "__delitem__", "__iadd__", "__imul__"),
):
    setattr(ToldList, _name, _telling(_name))
