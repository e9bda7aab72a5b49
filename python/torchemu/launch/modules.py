"""Modules: the program's own are each rank's own; the standard library's and installed packages' are everybody's."""

from __future__ import annotations

import contextlib
import functools
import importlib.machinery
import operator
import os
import sys
import types
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from torchemu import runtime
from torchemu.runtime.frames import STANDARD, is_installed

MAIN = ("__main__", "__mp_main__")
"""Names of the main program."""

_SHARED = (runtime.PACKAGE, *STANDARD)


@functools.lru_cache(maxsize=10_000)
def is_program_file(file: str) -> bool:
    """Reports whether a source file is part of the program, and not of Python, an installed package or torchemu."""
    path = os.path.abspath(file)
    return not (file.startswith("<") or path.startswith(_SHARED) or is_installed(path))


class Rules:
    """Rules that tell the program's modules of a run, and make a rank's copy of one.

    Args:
        isolate: names of installed packages whose modules are each rank's own too.
    """

    def __init__(self, isolate: Iterable[str]) -> None:
        self._isolated = frozenset(isolate)
        self._shared: set[str] = set()  # names that have been looked at
        self._sets: dict[frozenset[str], frozenset[str]] = {}
        self._loading: list[str] = []  # shared modules that the running rank is loading

    def own(self, started: bool = True) -> dict[str, types.ModuleType]:
        """Returns the loaded modules that are the program's; before it has started, none that came from nowhere."""
        new = sys.modules.keys() - self._shared
        found = {name: sys.modules[name] for name in new if self._is_own(name, sys.modules[name], started)}
        self._shared |= new - found.keys()
        return found

    def _is_own(self, name: str, module: types.ModuleType, started: bool) -> bool:
        if name in MAIN:
            return True
        known = variables(module)
        file = known.get("__file__")
        if isinstance(file, str):
            return self.is_own_file(name, file)
        folders = _folders(known.get("__path__"))
        if folders:  # a package without a file of its own
            return any(self.is_own_file(name, os.path.join(folder, "")) for folder in folders)
        return started and known.get("__spec__") is None and name.partition(".")[0] not in self._shared

    def is_own_file(self, name: str, file: str) -> bool:
        """Reports whether a module, and the file it is from, are the program's: the main one is, wherever it lies."""
        if name in MAIN:
            return True
        isolated = name.partition(".")[0] in self._isolated and not file.startswith(runtime.PACKAGE)
        return isolated or is_program_file(file)

    def isolate(self, *modules: str) -> None:
        """Makes the packages of installed modules each rank's own, from here on: those that are loaded are the running
        rank's."""
        packages = {name.partition(".")[0] for name in modules}
        self._isolated |= packages
        self._shared = {name for name in self._shared if name.partition(".")[0] not in packages}

    @contextlib.contextmanager
    def loading(self, name: str) -> Iterator[None]:
        """Knows of a shared module while the running rank loads it."""
        self._loading.append(name)
        try:
            yield
        finally:
            if name in self._loading:
                self._loading.remove(name)

    def leave_loading(self) -> None:
        """Isolates the packages that the running rank is loading where it waits for others: they are to load them, too,
        and not to find halves. One of which a part alone is being loaded stays shared: others use what there is."""
        if self._loading:
            self.isolate(*(name for name in self._loading if "." not in name))
            self._loading.clear()

    def knows(self, names: Iterable[str]) -> bool:
        """Reports whether one of some modules is of an installed package that is each rank's own."""
        return any(name.partition(".")[0] in self._isolated for name in names)

    def interned(self, names: Iterable[str]) -> frozenset[str]:
        """The set of names, such that equal sets are the same."""
        names = frozenset(names)
        return self._sets.setdefault(names, names)


def variables(owner: Any) -> dict[str, Any]:
    """Returns what an object has for itself; {} where it has nothing. A module whose class makes its attributes at the
    first use (apipkg's) is not asked, which would make them all."""
    if issubclass(type(owner), types.ModuleType):  # what cffi compiles says that it is of this class, and is not
        found: dict[str, Any] = _of_module(owner)
        return found
    return getattr(owner, "__dict__", {})


_of_module: Any = vars(types.ModuleType)["__dict__"].__get__


def _folders(path: Any) -> list[str]:
    """Returns the folders of a package; none where it is inside of one that could not be loaded."""
    try:
        return [*map(str, path or ())]
    except KeyError:
        return []


class Table:
    """The program's modules that one rank has loaded, or those loaded outside of all ranks.

    Attributes:
        names: their names.
    """

    names: frozenset[str]

    def __init__(self, rules: Rules, own: dict[str, types.ModuleType]) -> None:
        self._rules = rules
        self._count = -1
        self._keep(own)

    def _keep(self, own: dict[str, types.ModuleType]) -> None:
        self._own, self._values, self.names = own, tuple(own.values()), self._rules.interned(own)
        self._get: Callable[[Any], Any] = (
            operator.itemgetter(*own) if len(own) > 1 else lambda loaded: tuple(loaded[name] for name in own)
        )

    def save(self) -> None:
        """Takes over what the rank has imported, replaced and removed since restore."""
        self._rules.leave_loading()
        if len(sys.modules) != self._count or self._changed():
            self._keep(self._rules.own())

    def _changed(self) -> bool:
        try:
            return self._get(sys.modules) != self._values
        except KeyError:
            return True

    def restore(self, instead_of: Table) -> None:
        """Puts these modules in the place of another table's."""
        loaded = sys.modules
        if instead_of.names is not self.names:
            for name in instead_of.names - self.names:
                loaded.pop(name, None)
        loaded.update(self._own)
        self._count = len(loaded)

    def main(self) -> dict[str, types.ModuleType]:
        """The main program among them."""
        return {name: module for name, module in self._own.items() if name in MAIN}

    def spec(self, name: str) -> importlib.machinery.ModuleSpec | None:
        """Returns the spec by which a module of this table was loaded, if it knows."""
        spec = getattr(self._own.get(name), "__spec__", None)
        return None if spec is None or spec.loader is None else spec
