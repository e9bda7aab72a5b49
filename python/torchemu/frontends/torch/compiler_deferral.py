"""``torch._dynamo`` until something needs it: optimizers and DDP import it, and ask nothing that takes a compiler.

It takes longer to load than PyTorch itself. The functions here are all that it is asked for by programs without a
compiler. Whatever else is asked for loads it, and then it is PyTorch's in every respect.
"""

from __future__ import annotations

import functools
import importlib
import importlib.abc
import importlib.machinery
import sys
from collections.abc import Callable
from types import FunctionType, ModuleType
from typing import Any

import torch

PACKAGE = "torch._dynamo"


class _Deferred(ModuleType):
    """A module that is loaded once it is asked for a name that is not here."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # by those who look through all modules
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        load()
        return getattr(sys.modules[self.__name__], name)

    def __setattr__(self, name: str, value: Any) -> None:
        if name.startswith("__"):  # by the import system
            super().__setattr__(name, value)
        else:
            load()
            setattr(sys.modules[self.__name__], name, value)


def load() -> ModuleType:
    """Loads the package, if it is not loaded, and returns it."""
    forget()
    return importlib.import_module(PACKAGE)


def forget() -> None:
    """Forgets the package where it is deferred, so that its next import loads it."""
    if isinstance(sys.modules.get(PACKAGE), _Deferred):
        del sys.modules[PACKAGE]
        vars(torch).pop("_dynamo", None)


class Deferring(importlib.abc.Loader):
    """Loads the package as a deferred one."""

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        """Returns the module."""
        return _Deferred(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        """Gives the module what is asked for without a compiler."""
        utils, rules = _Deferred(f"{PACKAGE}.utils"), _Deferred(f"{PACKAGE}.trace_rules")
        vars(utils)["get_optimize_ddp_mode"] = lambda: "ddp_optimizer"  # as long as nobody has set it
        vars(rules)["clear_lru_cache"] = _nothing
        vars(module).update(utils=utils, trace_rules=rules, disable=_disable, graph_break=_nothing)


class HandingOver(importlib.abc.Loader):
    """Hands over a module that was loaded while it was looked for."""

    def __init__(self, module: ModuleType) -> None:
        self._module, self._spec = module, module.__spec__

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        """Returns the module."""
        return self._module

    def exec_module(self, module: ModuleType) -> None:
        """Gives the module back its spec, in whose place the import system has put that of this loader."""
        module.__spec__ = self._spec


def _nothing(*_: Any, **__: Any) -> None:
    """Does all that there is to do where nothing is compiled."""


def _disable(function: Any = None, recursive: bool = True, **options: Any) -> Any:
    """Returns the function, kept from a compiler once one is loaded."""
    if type(function) is not FunctionType:
        return load().disable(function, recursive, **options)

    @functools.cache
    def disabled() -> Callable[..., Any]:
        return load().disable(function, recursive, **options)

    @functools.wraps(function)
    def runs(*args: Any, **kwargs: Any) -> Any:
        loaded = sys.modules.get(PACKAGE)
        if loaded is None or type(loaded) is _Deferred:
            return function(*args, **kwargs)
        return disabled()(*args, **kwargs)

    return runs
