"""The face that front ends show to the rest of torchemu."""

from __future__ import annotations

import importlib
import importlib.machinery
import pkgutil
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torchemu import runtime


def _keeps_its_name(module: str, name: str) -> str:
    return module


@dataclass(frozen=True)
class Torch:
    """A value of the flag ``--torch``: one of the packages that programs can get as torch.

    Attributes:
        name: the value.
        help: a line on it, for those who ask for help with the command.
        opened: called with the World of a run, whose ranks are not made yet, the seed of their random numbers and
            whether tensors of devices have elements, gives a context manager: while it is open, programs get this
            torch, and the World makes ranks (`World.fibers`) in the way that this torch needs. It raises ImportError
            if this torch cannot run here. None: programs get the front end's packages, and ranks are greenlets.
        can_omit_data: it can run programs whose tensors of devices have no elements.
        groups_in_tests: ranks of a test have a default group of c10d before they make one.
        is_there: says, without importing it, whether it can run here.
        is_default: it is the one that programs get where nobody names one. One front end says so; those that are no
            torch are for programs with this one.
    """

    name: str
    help: str
    opened: Callable[[runtime.World, int, bool], AbstractContextManager[object]] | None = None
    can_omit_data: bool = False
    groups_in_tests: bool = True
    is_there: Callable[[], bool] = lambda: True
    is_default: bool = False


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
        torch: the value of ``--torch`` for which it is there; None for what is there beside the default one.
        beside_all: it is there beside every torch.
        version: of its packages, for programs that ask importlib.metadata; "" where that knows none.
        lacks: says of a module, {name}, that it has not, where programs find that; "" leaves it to Python.
    """

    packages: Mapping[str, str]
    modules: Mapping[str, str] = field(default_factory=dict)
    gives_way: Mapping[str, str] = field(default_factory=dict)
    isolates: tuple[str, ...] = ()
    fixtures: str = ""
    home: Callable[[str, str], str] = _keeps_its_name
    torch: Torch | None = None
    beside_all: bool = False
    version: str = ""
    lacks: str = ""

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
    """The front ends that there are: FRONT_END of each folder here that has a module front_end."""
    folder = importlib.import_module("torchemu.frontends").__path__
    names = sorted(entry.name for entry in pkgutil.iter_modules(folder) if entry.ispkg)
    found = (f"torchemu.frontends.{name}.front_end" for name in names if _declares(name, folder))
    return tuple(importlib.import_module(module).FRONT_END for module in found)


def _declares(name: str, folder: Iterable[str]) -> bool:
    inside = [f"{path}/{name}" for path in folder]
    return importlib.machinery.PathFinder.find_spec("front_end", inside) is not None


def torches() -> dict[str, Torch]:
    """The values of ``--torch`` by their names, the default one first."""
    found = [front_end.torch for front_end in front_ends() if front_end.torch is not None]
    return {torch.name: torch for torch in sorted(found, key=lambda torch: not torch.is_default)}


def torch_named(name: str | None) -> Torch:
    """A value of ``--torch``, by its name; None stands for the default one.

    Raises:
        ValueError: there is no such front end; the text has those that there are.
    """
    known = torches()
    if name is not None and name not in known:
        raise ValueError(f"there is no front end {name!r} to be torch: use {' or '.join(map(repr, known))}")
    return next(iter(known.values())) if name is None else known[name]


def fitting(names: Iterable[str], omits_data: bool = False) -> tuple[Torch, str]:
    """The torch of a script whose command names none, and why it is that: one that is installed, if there is one, and
    ours for programs that use what is there beside ours.

    Args:
        names: the modules that the script imports, and the attributes that it asks for.
        omits_data: it is to run without the elements of tensors.
    """
    ours = torch_named(None)
    installed = [torch for torch in torches().values() if torch is not ours and torch.is_there()]
    beside = [name for name in sorted(names) if _is_beside(name)]
    if not installed:
        return ours, "there is no other one"
    if omits_data and not ours.can_omit_data:
        return installed[0], "for --no-data"
    if beside:
        return ours, f"the program uses {beside[0]}, which is there with it only"
    return installed[0], "it is there"


def _is_beside(name: str) -> bool:
    """Reports whether a name is of a package, or of a module of torch's, that is there with our torch only."""
    if name == "ahbm" or name.startswith("torch.ahbm"):
        return True
    package = name.partition(".")[0]
    if package == "torchemu":
        return name != "torchemu.pytorch"
    ours = [front_end for front_end in front_ends() if front_end.torch is None and not front_end.beside_all]
    return any(front_end.module(package) is not None for front_end in ours)


def enabled(torch: str | None = None) -> tuple[FrontEnd, ...]:
    """The front ends of programs that get a torch, by its name; None stands for the default one."""
    chosen = torch_named(torch)
    beside = None if chosen.is_default else chosen
    return tuple(front_end for front_end in front_ends() if front_end.torch in (chosen, beside) or front_end.beside_all)


def isolated(torch: str | None = None) -> tuple[str, ...]:
    """The installed packages of which each rank has modules of its own, by default, with a torch."""
    return tuple(sorted({package for front_end in enabled(torch) for package in front_end.isolates}))
