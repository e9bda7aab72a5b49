"""Stand-ins for other projects' packages. They can be imported under their own names inside a run, and only there.

A package here, such as ``torchemu.compat.kernbench``, is what ``import kernbench`` gives inside a run.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import pkgutil
import sys
from collections.abc import Iterator, Sequence
from types import ModuleType

NAMES = tuple(module.name for module in pkgutil.iter_modules(__path__))
"""The top-level packages that there are stand-ins for."""


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds the stand-ins under their own names."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname.partition(".")[0] not in NAMES or importlib.util.find_spec(f"{__name__}.{fullname}") is None:
            return None
        return importlib.machinery.ModuleSpec(fullname, self)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        return importlib.import_module(f"{__name__}.{spec.name}")

    def exec_module(self, module: ModuleType) -> None:
        """Does nothing: the import of the stand-in ran it."""


@contextlib.contextmanager
def installed() -> Iterator[None]:
    """Makes the stand-ins importable for the duration of a with block; real packages of those names are hidden."""
    finder = _Finder()
    hidden = _taken_out()
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)
        _taken_out()
        sys.modules.update(hidden)


def _taken_out() -> dict[str, ModuleType]:
    """Removes the modules of those names from the loaded ones, and returns them."""
    return {name: sys.modules.pop(name) for name in list(sys.modules) if name.partition(".")[0] in NAMES}
