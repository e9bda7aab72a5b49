"""Modules that can be imported under a second name, and are the same modules under both."""

from __future__ import annotations

import importlib
import importlib.machinery
import importlib.util
import sys
from collections.abc import Callable, Sequence
from types import CodeType, ModuleType
from typing import Any, cast


class AliasFinder:
    """Finds modules under their second names, and is their loader.

    It is derived from none of importlib.abc, which takes longer to load than all of this.

    Args:
        meant: gives the name of the module that a second name stands for; None for names that stand for themselves.
    """

    def __init__(self, meant: Callable[[str], str | None]) -> None:
        self._meant = meant

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """The spec of a module under its second name."""
        meant = self._meant(fullname)
        found = None if meant is None else importlib.util.find_spec(meant)
        if found is None:
            return None
        return importlib.machinery.ModuleSpec(fullname, cast(Any, self), loader_state=meant, origin=found.origin)

    def get_code(self, fullname: str) -> CodeType | None:
        """The module's code, for `python -m`."""
        spec = self.find_spec(fullname, None)
        if spec is None or spec.origin is None:
            return None
        return importlib.machinery.SourceFileLoader(fullname, spec.origin).get_code(fullname)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        """The module, which is loaded under its own name if it is not yet."""
        module = importlib.import_module(spec.loader_state)
        spec.loader_state = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Gives the module back its own spec, in whose place the import system has put that of the second name."""
        assert module.__spec__ is not None
        other = module.__spec__.name
        module.__spec__ = module.__spec__.loader_state
        for name, value in list(vars(module).items()):
            inner = sys.modules.get(f"{module.__name__}.{name}")
            if inner is not None and inner is not value:  # the import system would hide multiprocessing.spawn by it
                sys.modules.setdefault(f"{other}.{name}", inner)
