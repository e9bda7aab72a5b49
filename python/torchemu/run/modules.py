"""Modules: the program's own are each rank's own; the standard library's and installed packages' are everybody's."""

from __future__ import annotations

import functools
import importlib.abc
import importlib.machinery
import importlib.util
import operator
import os
import sys
import sysconfig
import types
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from torchemu import _runtime

_MAIN = ("__main__", "__mp_main__")
_INSTALLED = (f"{os.sep}site-packages{os.sep}", f"{os.sep}dist-packages{os.sep}")
_SHARED = (
    _runtime.PACKAGE,
    *(os.path.join(sysconfig.get_path(name), "") for name in ("stdlib", "platstdlib")),
)


@functools.lru_cache(maxsize=10_000)
def is_program_file(file: str) -> bool:
    """Whether a source file is part of the program, and not of Python, an installed package or torchemu."""
    path = os.path.abspath(file)
    return not (file.startswith("<") or path.startswith(_SHARED) or any(part in path for part in _INSTALLED))


class Rules:
    """Which modules of a run are the program's, and how a rank comes to its copy of one.

    Args:
        isolate: names of installed packages whose modules are each rank's own too.
    """

    def __init__(self, isolate: Iterable[str]) -> None:
        self._isolated = frozenset(isolate)
        self._shared: set[str] = set()  # names that have been looked at
        self._codes: dict[str, types.CodeType] = {}
        self._specs: dict[tuple[Any, ...], importlib.machinery.ModuleSpec] = {}
        self._sets: dict[frozenset[str], frozenset[str]] = {}

    def own(self, started: bool = True) -> dict[str, types.ModuleType]:
        """Those of the loaded modules that are the program's; before it has started, none that came from nowhere."""
        new = sys.modules.keys() - self._shared
        found = {name: sys.modules[name] for name in new if self._is_own(name, sys.modules[name], started)}
        self._shared |= new - found.keys()
        return found

    def _is_own(self, name: str, module: types.ModuleType, started: bool) -> bool:
        package = name.partition(".")[0]
        if name in _MAIN or package in self._isolated:
            return True
        known = getattr(module, "__dict__", {})
        file, path = known.get("__file__"), known.get("__path__")
        if isinstance(file, str):
            return is_program_file(file)
        if path:
            return any(is_program_file(os.path.join(str(p), "")) for p in path)
        return started and known.get("__spec__") is None and package not in self._shared

    def interned(self, names: Iterable[str]) -> frozenset[str]:
        """The set of names, such that equal sets are the same."""
        names = frozenset(names)
        return self._sets.setdefault(names, names)

    def spec(self, name: str, path: Sequence[str] | None) -> importlib.machinery.ModuleSpec | None:
        """How to import a module, on behalf of a rank: one of the program's is compiled once and run in each rank."""
        key = (name, *(sys.path if path is None else path))
        known = self._specs.get(key)
        if known is None:
            known = _found(name, path)
            if known is None or type(known.loader) is not importlib.machinery.SourceFileLoader:
                return known
            if known.origin is None or not (name.partition(".")[0] in self._isolated or is_program_file(known.origin)):
                return known
            known.loader = _CompiledOnce(name, known.origin, self._codes)
            self._specs[key] = known
        return copied(known)


def copied(spec: importlib.machinery.ModuleSpec) -> importlib.machinery.ModuleSpec:
    """A spec for another module object of the same module."""
    if spec.origin is None or not spec.has_location:
        copy = importlib.machinery.ModuleSpec(spec.name, spec.loader, origin=spec.origin)
        copy.submodule_search_locations = spec.submodule_search_locations
        return copy
    where = spec.submodule_search_locations
    made = importlib.util.spec_from_file_location(
        spec.name, spec.origin, loader=spec.loader, submodule_search_locations=None if where is None else list(where)
    )
    assert made is not None
    return made


def _found(name: str, path: Sequence[str] | None) -> importlib.machinery.ModuleSpec | None:
    for finder in sys.meta_path:
        if not isinstance(finder, Finder) and hasattr(finder, "find_spec"):
            spec = finder.find_spec(name, path, None)
            if spec is not None:
                return spec
    return None


class _CompiledOnce(importlib.machinery.SourceFileLoader):
    """Compiles, or reads from __pycache__, once for all ranks."""

    def __init__(self, name: str, path: str, codes: dict[str, types.CodeType]) -> None:
        super().__init__(name, path)
        self._codes = codes

    def get_code(self, fullname: str) -> types.CodeType | None:
        code = self._codes.get(self.path) or super().get_code(fullname)
        if code is not None:
            self._codes[self.path] = code
        return code


class Finder(importlib.abc.MetaPathFinder):
    """Finds modules for ranks. Outside of ranks, imports are what they always are."""

    def __init__(self, rules: Rules, outside: Table) -> None:
        self._rules, self._outside = rules, outside

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: types.ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """The spec of a new copy of one of the program's modules; of another module, what other finders find."""
        if _runtime.process() is None:
            return None
        return self._rules.spec(fullname, path) or self._outside.again(fullname)


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
        return {name: module for name, module in self._own.items() if name in _MAIN}

    def again(self, name: str) -> importlib.machinery.ModuleSpec | None:
        """A spec by which a module of this table can be loaded once more, if it knows where it came from."""
        spec = getattr(self._own.get(name), "__spec__", None)
        return None if spec is None or spec.loader is None else copied(spec)
