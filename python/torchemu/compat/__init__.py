"""Stand-ins for other projects' packages. They can be imported under their own names inside a run, and only there.

A package here, such as ``torchemu.compat.kernbench``, is what ``import kernbench`` gives inside a run. ``import torch``
gives torchemu itself, and ``import torch.distributed`` torchemu.distributed. The stand-in for Megatron gives way to
Megatron itself, where that can be imported: who has installed it means it.
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
from types import CodeType, ModuleType

from torchemu.compat import _names
from torchemu.compat._names import given as names_given

__all__ = ["NAMES", "installed", "names_given", "of_torch"]

_STAND_INS = tuple(module.name for module in pkgutil.iter_modules(__path__) if module.ispkg)
NAMES = (*_STAND_INS, "torch")
"""The top-level packages that there are stand-ins for."""

_GIVE_WAY = {"megatron": "core"}
"""Stand-ins for packages that are used instead where they are importable, and a package within that tells them from a
folder of the same name."""


def _stand_in(name: str) -> str | None:
    """The name of the module that is meant by another project's name; None when there is no such stand-in."""
    package = name.partition(".")[0]
    if package not in NAMES or (package in _GIVE_WAY and _is_installed(package)):
        return None
    meant = f"{__name__}.{name}" if package in _STAND_INS else of_torch(name)
    return meant if importlib.util.find_spec(meant) is not None else None


def of_torch(name: str) -> str:
    """The name of torchemu's module that a name of PyTorch's means, whether or not there is one."""
    return _names.FILES.get(name) or "torchemu" + name.removeprefix("torch")


def _is_installed(package: str) -> bool:
    """Whether the package itself is on sys.path."""
    spec = importlib.machinery.PathFinder.find_spec(package)
    if spec is None or spec.submodule_search_locations is None:
        return False
    within = importlib.machinery.PathFinder.find_spec(_GIVE_WAY[package], [*spec.submodule_search_locations])
    return within is not None and within.origin is not None


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds the stand-ins under their own names, and gives what is in torchemu's modules the names of PyTorch's."""

    def __init__(self, names: _names.Names) -> None:
        self._names = names

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """Where a module is, if it is a stand-in or torchemu's."""
        if fullname.startswith("torchemu."):
            return self._named(importlib.machinery.PathFinder.find_spec(fullname, path, target))
        meant = _stand_in(fullname)
        if meant is None:
            return None
        found = importlib.util.find_spec(meant)
        origin = None if found is None else found.origin
        return importlib.machinery.ModuleSpec(fullname, self, loader_state=meant, origin=origin)

    def _named(self, spec: importlib.machinery.ModuleSpec | None) -> importlib.machinery.ModuleSpec | None:
        if spec is not None and type(spec.loader) is importlib.machinery.SourceFileLoader:
            spec.loader = _names.NamingLoader(spec.loader.name, spec.loader.path)
            spec.loader.names = self._names
        return spec

    def get_code(self, fullname: str) -> CodeType | None:
        """The stand-in's, for who runs it as a program."""
        spec = self.find_spec(fullname, None)
        if spec is None or spec.origin is None:
            return None
        return importlib.machinery.SourceFileLoader(fullname, spec.origin).get_code(fullname)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        """The stand-in, which is loaded under its own name if it is not yet."""
        module = importlib.import_module(spec.loader_state)
        spec.loader_state = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Makes the module say again who it is: the import system has put the spec of the other name there."""
        assert module.__spec__ is not None
        other = module.__spec__.name
        module.__spec__ = module.__spec__.loader_state
        for name, value in list(vars(module).items()):
            inner = sys.modules.get(f"{module.__name__}.{name}")
            if inner is not None and inner is not value:  # the import system would hide multiprocessing.spawn by it
                sys.modules.setdefault(f"{other}.{name}", inner)


@contextlib.contextmanager
def installed() -> Iterator[None]:
    """Makes the stand-ins importable for the duration of a with block; real packages of those names are hidden."""
    hidden = _taken_out()
    with _names.given() as names:
        finder = _Finder(names)
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
