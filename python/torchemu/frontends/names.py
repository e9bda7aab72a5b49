"""The names that classes and functions have inside a run: those of the packages that front ends stand for.

Programs print, log and pickle types, and a traceback begins with the name of its exception. Inside a run ``import
torch`` gives a front end of torchemu, so there its Tensor is ``<class 'torch.Tensor'>``, and pickle finds it by that
name. Outside of runs everything has the name of the file that it is in.
"""

from __future__ import annotations

import contextlib
import functools
import importlib.machinery
import sys
from collections.abc import Iterator
from types import FunctionType, ModuleType
from typing import Any

from torchemu.frontends.base import front_ends


class Names:
    """Gives classes and functions the names that programs know them by, and takes them back."""

    def __init__(self) -> None:
        self._changed: list[tuple[Any, str]] = []

    def give(self, module: ModuleType) -> None:
        """Renames all that is defined in a module."""
        for value in list(vars(module).values()):  # its type is asked: some of them warn of any other look
            if issubclass(type(value), type | FunctionType) and value.__module__ == module.__name__:
                self._rename(value)

    def _rename(self, value: Any) -> None:
        before = value.__module__
        home = _home(before, value.__qualname__)
        if home != before:
            value.__module__ = home
            self._changed.append((value, before))

    def take_back(self) -> None:
        """Gives all that were renamed their own names again."""
        for value, before in self._changed:
            value.__module__ = before
        self._changed.clear()


@functools.cache
def _home(module: str, name: str) -> str:
    for front_end in front_ends():
        home = front_end.home(module, name)
        if home != module:
            return home
    return module


@contextlib.contextmanager
def given() -> Iterator[Names]:
    """Renames all that is loaded, for the duration of a with block; inside of another such block nothing is left."""
    names = Names()
    for name, module in list(sys.modules.items()):
        if name.startswith("torchemu."):
            names.give(module)
    try:
        yield names
    finally:
        names.take_back()


class NamingLoader(importlib.machinery.SourceFileLoader):
    """Loads a module of torchemu and renames what is in it."""

    names: Names

    def exec_module(self, module: ModuleType) -> None:
        """Executes the module, and renames what is in it."""
        super().exec_module(module)
        self.names.give(module)
