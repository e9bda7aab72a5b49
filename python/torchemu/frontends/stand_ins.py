"""The packages of front ends under the names that programs import. They are there inside a run, and only there.

``import kernbench`` gives :mod:`torchemu.frontends.kernbench` inside a run, ``import torch.nn``
``torchemu.frontends.numpy.nn``; each front end says which packages it stands for.
"""

from __future__ import annotations

import contextlib
import importlib.machinery
import importlib.util
import sys
from collections.abc import Iterator, Sequence
from functools import partial
from types import ModuleType
from typing import TYPE_CHECKING

from torchemu import runtime
from torchemu.aliases import AliasFinder
from torchemu.frontends import base, names
from torchemu.frontends.base import FrontEnd
from torchemu.frontends.names import given as names_given

if TYPE_CHECKING:
    from importlib.metadata import Distribution, DistributionFinder

__all__ = ["installed", "names_given", "opened"]


def opened(
    torch: base.Torch, world: runtime.World, seed: int = 0, data: bool = True
) -> contextlib.AbstractContextManager[object]:
    """Gives a World's programs a torch for the duration of a with block, before its ranks are made.

    Args:
        torch: the value of ``--torch``.
        world: the World.
        seed: of the ranks' random numbers.
        data: tensors of devices have elements.

    Raises:
        ImportError: it cannot run here. ValueError: it cannot do without data.
    """
    if not data and not torch.can_omit_data:
        able = [f"--torch {other.name}" for other in base.torches().values() if other.can_omit_data]
        raise ValueError(f"--no-data does nothing with --torch {torch.name}, but with {' or '.join(able) or 'none'}")
    return installed(torch.name) if torch.opened is None else torch.opened(world, seed, data)


def _module_of(front_ends: Sequence[FrontEnd], name: str) -> str | None:
    """The module that a program's name stands for; None where no front end has it."""
    for front_end in front_ends:
        meant = front_end.module(name)
        if meant is not None and importlib.util.find_spec(meant) is not None:
            return meant
    return None


class _Finder(AliasFinder):
    """Finds the stand-ins, and gives what is in torchemu's modules the names that programs know."""

    def __init__(self, front_ends: Sequence[FrontEnd], given: names.Names) -> None:
        super().__init__(partial(_module_of, front_ends))
        self._front_ends, self._given = front_ends, given

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """Returns the spec of a stand-in, or of a module of torchemu.

        Raises:
            ModuleNotFoundError: a front end that says so itself has no such module.
        """
        if fullname.startswith("torchemu."):
            return self._named(_own(fullname, path, target))
        found = super().find_spec(fullname, path, target)
        if found is None:
            self._refuse(fullname)
        return found

    def _refuse(self, name: str) -> None:
        for front_end in self._front_ends:
            if front_end.lacks and front_end.module(name) is not None:
                raise ModuleNotFoundError(front_end.lacks.format(name=name), name=name)

    def find_distributions(self, context: DistributionFinder.Context) -> Iterator[Distribution]:
        """Yields what importlib.metadata is to know of the stand-ins."""
        from torchemu.frontends import distributions  # with parsers that other programs do without

        return distributions.found(self._front_ends, context.name)

    def _named(self, spec: importlib.machinery.ModuleSpec | None) -> importlib.machinery.ModuleSpec | None:
        if spec is not None and type(spec.loader) is importlib.machinery.SourceFileLoader:
            spec.loader = names.NamingLoader(spec.loader.name, spec.loader.path)
            spec.loader.names = self._given
        return spec


def _own(name: str, path: Sequence[str] | None, target: ModuleType | None) -> importlib.machinery.ModuleSpec | None:
    """The spec of a file of torchemu's; None for second names, which another finder knows."""
    parent = sys.modules.get(name.rpartition(".")[0])
    if parent is None or parent.__name__ != name.rpartition(".")[0]:
        return None
    return importlib.machinery.PathFinder.find_spec(name, path, target)


def are_installed() -> bool:
    """Says whether programs get the stand-ins now."""
    return any(isinstance(finder, _Finder) for finder in sys.meta_path)


@contextlib.contextmanager
def installed(torch: str | None = None) -> Iterator[None]:
    """Makes the stand-ins importable for the duration of a with block; real packages of those names are hidden.

    Args:
        torch: the name of the torch that programs are to get; None for the default one.
    """
    front_ends = base.enabled(torch)
    hidden = _taken_out(front_ends)
    with names.given() as given:
        finder = _Finder(front_ends, given)
        sys.meta_path.insert(0, finder)
        try:
            yield
        finally:
            sys.meta_path.remove(finder)
            _taken_out(front_ends)
            sys.modules.update(hidden)


def _taken_out(front_ends: Sequence[FrontEnd]) -> dict[str, ModuleType]:
    """Removes the modules of the front ends' packages from the loaded ones, and returns them."""
    stood_for = {package for front_end in front_ends for package in front_end.packages}
    return {name: sys.modules.pop(name) for name in list(sys.modules) if name.partition(".")[0] in stood_for}
