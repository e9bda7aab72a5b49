"""torch.utils.hooks: what registering a hook returns."""

from __future__ import annotations

import weakref
from collections import OrderedDict
from typing import Any, Self

Hooks = OrderedDict[int, Any]


class RemovableHandle:
    """Takes a hook away again: by ``remove()``, or at the end of a ``with`` block.

    Args:
        hooks_dict: the hooks by number; the caller puts the new one there under the handle's ``id``.
        extra_dict: a further table, or several, with something about the hooks by the same numbers.
    """

    def __init__(self, hooks_dict: Hooks, *, extra_dict: Any = None) -> None:
        self.id = max(hooks_dict, default=-1) + 1
        extra = extra_dict if isinstance(extra_dict, list) else [] if extra_dict is None else [extra_dict]
        self._tables: tuple[Any, ...] = tuple([weakref.ref(table) for table in (hooks_dict, *extra)])

    def remove(self) -> None:
        """The hook is not called any more. A second time does nothing."""
        for table in self._tables:
            (table() or {}).pop(self.id, None)
        self._tables = ()

    def __getstate__(self) -> tuple[int, list[Any]]:
        return self.id, [table() for table in self._tables]

    def __setstate__(self, state: tuple[int, list[Any]]) -> None:
        self.id, tables = state
        self._tables = tuple([weakref.ref(table) for table in tables if table is not None])

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.remove()


def registered(hooks: Hooks, hook: Any, *, prepend: bool = False) -> RemovableHandle:
    """Puts a hook behind, or before, those that are there."""
    handle = RemovableHandle(hooks)
    hooks[handle.id] = hook
    if prepend:
        hooks.move_to_end(handle.id, last=False)
    return handle
