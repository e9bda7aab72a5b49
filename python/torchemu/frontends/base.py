"""What the rest of torchemu knows of a front end."""

from __future__ import annotations

import importlib
import importlib.machinery
import pkgutil
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache


def _keeps_its_name(module: str, name: str) -> str:
    return module


@dataclass(frozen=True)
class FrontEnd:
    """A set of packages that programs import inside a run.

    Attributes:
        packages: the module that a run's program gets, by the top-level name that it imports.
        modules: the same for single modules below them that lie elsewhere, by full name.
        gives_way: packages that are used instead of the front end's where they are installed, each with a package
            inside of it that tells it from a folder of the same name.
        isolates: installed packages of which each rank has modules of its own, by default.
        fixtures: the module with what pytest's tests of its programs use; "" for none.
        home: gives the module in which a run's program sees a class or function, by its own module and its name.
    """

    packages: Mapping[str, str]
    modules: Mapping[str, str] = field(default_factory=dict)
    gives_way: Mapping[str, str] = field(default_factory=dict)
    isolates: tuple[str, ...] = ()
    fixtures: str = ""
    home: Callable[[str, str], str] = _keeps_its_name

    def module(self, name: str) -> str | None:
        """The module that a program's name stands for, whether or not there is one; None for other packages."""
        package, dot, rest = name.partition(".")
        if package not in self.packages or self._is_installed(package):
            return None
        for meant in _prefixes(name):
            if meant in self.modules:
                return self.modules[meant] + name[len(meant) :]
        return self.packages[package] + dot + rest

    def _is_installed(self, package: str) -> bool:
        if package not in self.gives_way:
            return False
        spec = importlib.machinery.PathFinder.find_spec(package)
        if spec is None or spec.submodule_search_locations is None:
            return False
        inner = importlib.machinery.PathFinder.find_spec(self.gives_way[package], [*spec.submodule_search_locations])
        return inner is not None and inner.origin is not None


def _prefixes(name: str) -> list[str]:
    """A dotted name and those of the packages it is in, the longest first."""
    parts = name.split(".")
    return [".".join(parts[:end]) for end in range(len(parts), 0, -1)]


@cache
def front_ends() -> tuple[FrontEnd, ...]:
    """The front ends that are enabled by default: FRONT_END of each folder here that has a module front_end."""
    folder = importlib.import_module("torchemu.frontends").__path__
    names = sorted(entry.name for entry in pkgutil.iter_modules(folder) if entry.ispkg)
    found = (f"torchemu.frontends.{name}.front_end" for name in names if _declares(name, folder))
    return tuple(importlib.import_module(module).FRONT_END for module in found)


def _declares(name: str, folder: Iterable[str]) -> bool:
    inside = [f"{path}/{name}" for path in folder]
    return importlib.machinery.PathFinder.find_spec("front_end", inside) is not None


def isolated() -> tuple[str, ...]:
    """The installed packages of which each rank has modules of its own, by default."""
    return tuple(sorted({package for front_end in front_ends() for package in front_end.isolates}))
