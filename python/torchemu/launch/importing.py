"""Imports by which a rank gets its own copies of the program's modules."""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import importlib.util
import marshal
import os
import re
import struct
import sys
import types
import zlib
from collections.abc import Iterator, Sequence
from typing import Any

from torchemu.launch import compiling, pytest_runs, shared_attributes
from torchemu.launch.modules import MAIN, Rules, Table
from torchemu.launch.patches import current
from torchemu.runtime.frames import is_installed

_Spec = importlib.machinery.ModuleSpec
_KNOWING_RANKS = ("torch", "torchemu")
_IMPORTS = re.compile(rb"^(?:import[ \t]+(.+)|from[ \t]+(\w+))", re.MULTILINE)


class Finder(importlib.abc.MetaPathFinder):
    """Finds modules for ranks: a module of the program where it was imported from outside of ranks, and any other
    where Python finds it. Outside of ranks, imports are what they always are.

    Args:
        rules: which modules are the program's.
        outside: those that are loaded outside of ranks.
        own_orders: ranks go through sets in orders of their own.
    """

    def __init__(self, rules: Rules, outside: Table, own_orders: bool = False) -> None:
        self._own_orders = own_orders
        self._rules, self._outside = rules, outside
        self._codes: dict[str, types.CodeType] = {}
        self._specs: dict[tuple[Any, ...], _Spec] = {}

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: types.ModuleType | None = None
    ) -> _Spec | None:
        """The spec for a new module object; one of the program's is compiled once for all ranks."""
        if current() is None:
            return None
        key = (fullname, *(sys.path if path is None else path))
        if key in self._specs:
            return _copied(self._specs[key])
        loaded = self._outside.spec(fullname)
        spec = _found(fullname, path) if loaded is None else _copied(loaded)
        if spec is not None and self._is_source_of_program(spec):
            assert spec.origin is not None
            spec.loader = _CompiledOnce(fullname, spec.origin, self._codes, self._own_orders)
            self._specs[key] = spec
        elif spec is not None and self._is_installed(spec):
            assert spec.origin is not None
            spec.loader = self._of_installed(spec.name, spec.origin)
        return spec

    def _is_installed(self, spec: _Spec) -> bool:
        """Reports whether a module is of an installed package, and not of PyTorch, which knows of its ranks."""
        file = spec.origin if type(spec.loader) is importlib.machinery.SourceFileLoader else None
        return file is not None and is_installed(file) and spec.name.partition(".")[0] not in _KNOWING_RANKS

    def _of_installed(self, name: str, path: str) -> importlib.machinery.SourceFileLoader:
        if pytest_runs.is_of_pytest(name):
            return _OfPytest(name, path, self._own_orders)
        return _Told(name, path, self._rules)

    def _is_source_of_program(self, spec: _Spec) -> bool:
        return (
            type(spec.loader) is importlib.machinery.SourceFileLoader
            and spec.origin is not None
            and self._rules.is_own_file(spec.name, spec.origin)
        )


def _found(name: str, path: Sequence[str] | None) -> _Spec | None:
    """Returns the module's spec by all other finders."""
    for finder in sys.meta_path:
        if not isinstance(finder, Finder) and hasattr(finder, "find_spec"):
            spec = finder.find_spec(name, path, None)
            if spec is not None:
                return spec
    return None


def _copied(spec: _Spec) -> _Spec:
    """A spec for another module object of the same module."""
    where = spec.submodule_search_locations
    if spec.origin is None or not spec.has_location:
        copy = _Spec(spec.name, spec.loader, origin=spec.origin)
        copy.submodule_search_locations = where
        return copy
    made = importlib.util.spec_from_file_location(
        spec.name, spec.origin, loader=spec.loader, submodule_search_locations=None if where is None else list(where)
    )
    assert made is not None
    return made


class _CompiledOnce(importlib.machinery.SourceFileLoader):
    """Compiles, or reads from __pycache__, once for all ranks."""

    def __init__(self, name: str, path: str, codes: dict[str, types.CodeType], own_orders: bool) -> None:
        super().__init__(name, path)
        self._codes, self._own_orders = codes, own_orders

    def get_code(self, fullname: str) -> types.CodeType | None:
        code = self._codes.get(self.path)
        if code is None:
            code = compiling.compiled(self.get_data(self.path), self.path, self._own_orders)
            code = code or super().get_code(fullname)
        if code is not None:
            self._codes[self.path] = code
        return code


class _OfPytest(importlib.machinery.SourceFileLoader):
    """Loads a module of pytest, whose functions set attributes for their rank."""

    def __init__(self, name: str, path: str, own_orders: bool) -> None:
        super().__init__(name, path)
        self._own_orders = own_orders

    def get_code(self, fullname: str) -> types.CodeType | None:
        return compiling.told(self.get_data(self.path), self.path) or super().get_code(fullname)

    def exec_module(self, module: types.ModuleType) -> None:
        super().exec_module(module)
        pytest_runs.adapt(module, self._own_orders)


class _Told(importlib.machinery.SourceFileLoader):
    """Loads a module of an installed package whose functions tell what they set on others' modules and classes. Beside
    what Python keeps of a file this keeps what it was compiled to, or that there is nothing to tell.

    Args:
        name: the module's.
        path: its file's.
        rules: which packages are a rank's own. A package that imports such a one keeps what a rank has, and is one too.
    """

    def __init__(self, name: str, path: str, rules: Rules) -> None:
        super().__init__(name, path)
        self._rules = rules

    def get_code(self, fullname: str) -> types.CodeType | None:
        code = self._compiled(fullname)
        if code is not None and self._rules.knows(code.co_names) and self._rules.knows(self._imported()):
            self._rules.isolate(fullname)
            self._rules.isolate(*_importing())
        return code

    def exec_module(self, module: types.ModuleType) -> None:
        with self._rules.loading(module.__name__):
            super().exec_module(module)

    def _imported(self) -> Iterator[str]:
        """Yields the packages that the module imports wherever it is loaded: not in a condition, nor in a function."""
        for several, one in _IMPORTS.findall(self.get_data(self.path)):
            yield from (name.strip().partition(b" ")[0].decode() for name in several.split(b","))
            yield one.decode()

    def _compiled(self, fullname: str) -> types.CodeType | None:
        file = importlib.util.cache_from_source(self.path, optimization="told")
        mark = self._mark()
        kept = self._kept(file, mark)
        if kept is None:
            kept = (shared_attributes.compiled(self.get_data(self.path), self.path),)
            if not sys.dont_write_bytecode:
                self.set_data(file, mark + marshal.dumps(kept))
        return kept[0] or super().get_code(fullname)

    def _mark(self) -> bytes:
        """Returns what the kept depends on: Python, how torchemu compiles, and the file's path, time and size."""
        stats = self.path_stats(self.path)
        how = zlib.crc32(os.fsencode(self.path), compiling.way(shared_attributes))
        return importlib.util.MAGIC_NUMBER + struct.pack("<IQQ", how, int(stats["mtime"] * 1e6), stats["size"])

    def _kept(self, file: str, mark: bytes) -> tuple[types.CodeType | None] | None:
        """Returns what a file keeps; None where that is nothing, or of another mark."""
        try:
            data = self.get_data(file)
            found: tuple[types.CodeType | None] | None = None
            if data.startswith(mark):
                found = marshal.loads(data[len(mark) :])
        except (OSError, EOFError, ValueError, TypeError):
            return None
        return found


def _importing() -> Iterator[str]:
    """Yields the modules of installed packages that are being loaded, as one imports the other."""
    frame: types.FrameType | None = sys._getframe(1)
    while frame is not None:
        name, is_module = str(frame.f_globals.get("__name__")), frame.f_code.co_name == "<module>"
        is_sharing = is_module and is_installed(frame.f_code.co_filename)
        if is_sharing and name.partition(".")[0] not in (*_KNOWING_RANKS, *MAIN):
            yield name
        frame = frame.f_back
