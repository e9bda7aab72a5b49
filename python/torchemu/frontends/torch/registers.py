"""Registries of installed packages, in which programs enter classes by names that nobody may enter twice.

A package is loaded once, so its registries would have what all ranks enter, and refuse what the second one does. What
modules enter while they are loaded is everybody's; what a rank enters is its own, and is there while the rank runs. So
is what modules enter that each rank loads for itself, which shows when the second one does.
"""

from __future__ import annotations

import contextlib
import dis
import types
from collections import OrderedDict, defaultdict
from collections.abc import Iterator
from itertools import islice
from typing import Any

from torchemu import runtime

_NAME = "registr"
"""A part of the names of registries, or of their classes."""

_FLAGS = "FlagValues"
"""The class of absl's flags, in which programs define theirs: a second definition of a name is passed over there."""

_NO_REGISTRIES = (type, types.ModuleType, types.FunctionType)

_ENTERS = "register"
"""The beginning of the names of functions by which programs enter something."""


class _Table:
    """A dict of a registry's.

    Args:
        entries: it, which has what is everybody's so far.

    Attributes:
        shared: the names that are everybody's, and which module has entered them as which rank loaded it.
        own: what ranks have of their own that do not run.
    """

    def __init__(self, entries: dict[Any, Any]) -> None:
        self.entries = entries
        self.shared: dict[Any, tuple[str, runtime.Context | None]] = dict.fromkeys(entries, ("", None))
        self.own: dict[runtime.Context | None, dict[Any, Any]] = {}

    def new(self) -> dict[Any, Any]:
        """Returns what is in it, and is not everybody's. It came last."""
        more = len(self.entries) - len(self.shared)
        last = islice(reversed(self.entries.items()), max(more, 0))
        return {name: value for name, value in reversed([*last]) if name not in self.shared}

    def exchange(self, before: runtime.Context | None, after: runtime.Context | None) -> None:
        """Puts what a rank has of its own in the place of what another one has."""
        if len(self.entries) != len(self.shared) and (left := self.new()):
            self.own[before] = left
            for name in left:
                del self.entries[name]
        if self.own and (taken := self.own.pop(after, None)):
            self.entries.update(taken)

    def share(self, module: str, old: dict[Any, Any]) -> None:
        """Makes what a module has entered everybody's, but for what was there before."""
        entered = [name for name in self.new() if name not in old]
        self.shared.update(dict.fromkeys(entered, (module, runtime.running())))
        for name in old if entered else ():
            if name in self.entries:
                self.entries[name] = self.entries.pop(name)  # own ones are last

    def part(self, module: str) -> None:
        """Makes what a module has entered the own of the rank that loaded it."""
        running = runtime.running()
        for name in [name for name, (entered_by, _) in self.shared.items() if entered_by == module]:
            _, rank = self.shared.pop(name)
            value = self.entries.pop(name, None)
            (self.entries if rank is running else self.own.setdefault(rank, {}))[name] = value

    def end(self) -> None:
        """Forgets what ranks had, and which loaded what."""
        for name in self.new():
            del self.entries[name]
        self.own.clear()
        self.shared = dict.fromkeys(self.shared, ("", None))


_lasting: dict[int, _Table] = {}
"""The tables of modules that stay loaded when a run ends, by their dicts."""


class Registries:
    """The registries that one run has met."""

    def __init__(self) -> None:
        self._tables = [*_lasting.values()]
        self._loaded: dict[str, runtime.Context | None] = {}  # by which rank
        self._apart: set[str] = set()  # modules that each rank loads for itself
        self._entries: list[dict[Any, Any]] = []  # the tables', and how many of each are everybody's
        self._shared: list[int] = []
        self._are_own = True  # a rank may have some of its own

    def note(self, module: types.ModuleType, code: types.CodeType) -> None:
        """Notes those that a module, of which it is given the code, has just been loaded with."""
        entered = {*_names_in_registering(code)}
        for name, value in [*vars(module).items()]:
            for entries in _dicts_of(name, value, name in entered):
                if id(entries) not in _lasting:
                    table = _lasting[id(entries)] = _Table(entries)
                    self._tables.append(table)
                    self._are_own = True

    @contextlib.contextmanager
    def loading(self, module: str) -> Iterator[None]:
        """Makes what a module enters while it is loaded everybody's; if no rank has loaded it before."""
        if self._loaded.get(module, runtime.running()) is not runtime.running() and module not in self._apart:
            self._apart.add(module)
            for table in self._tables:
                table.part(module)
        old = {id(table): table.new() for table in self._tables}
        yield
        self._loaded[module] = runtime.running()
        self._are_own = True
        if module not in self._apart:
            for table in self._tables:
                table.share(module, old.get(id(table), {}))

    def exchange(self, before: runtime.Context | None, after: runtime.Context | None) -> None:
        """Gives way to another rank's entries."""
        if not self._are_own and [*map(len, self._entries)] == self._shared:
            return
        for table in self._tables:
            table.exchange(before, after)
        self._entries = [table.entries for table in self._tables]
        self._shared = [len(table.shared) for table in self._tables]
        self._are_own = any(table.own for table in self._tables) or [*map(len, self._entries)] != self._shared

    def end(self) -> None:
        """Forgets what ranks had."""
        for table in self._tables:
            table.end()


def _names_in_registering(code: types.CodeType, inside: bool = False) -> Iterator[str]:
    """Yields the names in functions by which programs enter something, and in functions within these."""
    for inner in code.co_consts:
        if isinstance(inner, types.CodeType):
            enters = inside or inner.co_name.startswith(_ENTERS)
            if enters:
                yield from inner.co_names
            yield from _names_in_registering(inner, enters)


def _dicts_of(name: str, value: Any, is_entered: bool) -> list[dict[Any, Any]]:
    """Returns the dicts of a registry; none where a variable is no registry.

    Args:
        name: of the variable.
        value: what it is.
        is_entered: functions by which programs enter something speak of it.
    """
    kind = type(value)
    is_named = _NAME in name.lower()
    if kind in (dict, OrderedDict, defaultdict):
        return [value] if is_entered or (is_named and not name.startswith("__")) else []
    is_one = is_named or _NAME in kind.__name__.lower() or kind.__name__ == _FLAGS or _registering(kind) is not None
    if not is_one or issubclass(kind, _NO_REGISTRIES):
        return []
    held = [value, *getattr(value, "__dict__", {}).values()]
    if enters := _registering(kind):
        held = [getattr(value, attribute, None) for attribute in _entered_into(enters.__code__)]
    return [each for each in held if isinstance(each, dict) and _is_plain(type(each))]


def _registering(kind: type) -> types.FunctionType | None:
    """Returns the method by which programs enter something into what is used as a dict and is none, of a class of an
    installed package, but for PyTorch's."""
    method = getattr(kind, _ENTERS, None)
    function = getattr(method, "__func__", method)
    is_dict = issubclass(kind, dict) and _is_plain(kind)
    if not isinstance(function, types.FunctionType) or is_dict or not hasattr(kind, "__getitem__"):
        return None
    return None if kind.__module__.partition(".")[0] in ("torch", "torchemu") else function


def _entered_into(code: types.CodeType) -> Iterator[str]:
    """Yields the attributes into which a method enters something, as into dicts."""
    attribute = ""
    for instruction in dis.get_instructions(code):
        if instruction.opname == "STORE_SUBSCR" or instruction.argval in ("update", "setdefault"):
            yield attribute
        elif instruction.opname == "LOAD_ATTR":
            attribute = instruction.argval


def _is_plain(kind: Any) -> bool:
    """Reports whether a kind of dict is gone through as Python's are."""
    return getattr(kind, "items", None) in (dict.items, OrderedDict.items)
