"""PyTorch's compilers, which run what they are given as it is, and know of no Triton."""

from __future__ import annotations

import contextlib
import functools
import importlib.abc
import importlib.machinery
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from types import ModuleType
from typing import Any

import torch
from torch.utils import _triton

from torchemu.frontends.torch import compiler_deferral as deferral
from torchemu.frontends.torch.session import Session

_COMPILERS = ("torch._inductor", "torch._dynamo")


def install(run: Session) -> None:
    """Lets what programs compile run as it is: compilers would look into devices."""
    run.replace(torch, "compile", _compiling(torch.compile))
    run.replace(torch.autograd, "_add_metadata_json", lambda key, value: None)
    run.replace(_triton, "has_triton_package", lambda: not _asks_pytorch())
    run.replace(_triton, "has_triton", lambda: not _asks_pytorch() and torch.cuda.is_available())
    finder = _Finder()
    sys.meta_path.insert(0, finder)
    run.stack.callback(sys.meta_path.remove, finder)
    run.stack.callback(deferral.forget)


def _asks_pytorch() -> bool:
    """Reports whether it is PyTorch that asks for Triton, for its compilers, and not a program or another package."""
    file = sys._getframe(2).f_code.co_filename
    return file.startswith(_PYTORCH) and not file.endswith(_FOR_KERNELS)


_FOR_KERNELS = "_nvshmem_triton.py"
"""A module of PyTorch's that has functions for programs' kernels."""

_PYTORCH = os.path.dirname(torch.__file__) + os.sep


def _compiling(compile_: Callable[..., Any]) -> Callable[..., Any]:
    """Returns torch.compile, which wraps modules as it does where there is a compiler: programs look for _orig_mod, and
    names in state dicts begin with it."""

    @functools.wraps(compile_)
    def compiled(model: Any = None, **options: Any) -> Any:
        made = compile_(model, **options)
        if not isinstance(model, torch.nn.Module) or made is not model:
            return made
        from torch._dynamo.eval_frame import OptimizedModule  # which torch.compile has loaded; it takes long

        return OptimizedModule(model, _as_it_is)

    return compiled


def _as_it_is(function: Any) -> Any:
    return function


@contextlib.contextmanager
def _without_triton() -> Iterator[None]:
    """Makes ``import triton`` fail: the package that programs get has kernels, and no compiler to look into."""
    hidden = {name: sys.modules.pop(name) for name in list(sys.modules) if name.partition(".")[0] == "triton"}
    sys.modules["triton"] = None  # type: ignore[assignment]  # which the import system takes for "not there"
    try:
        yield
    finally:
        del sys.modules["triton"]
        sys.modules.update(hidden)


class _Finder(importlib.abc.MetaPathFinder):
    """Finds the modules of PyTorch's compilers, loads them without Triton, and torch._dynamo once it is used."""

    def __init__(self) -> None:
        self._has_deferred = False

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """Returns the spec of a module of a compiler; None for all others."""
        if not fullname.startswith(_COMPILERS):
            return None
        if fullname.startswith(deferral.PACKAGE + "."):
            deferral.load()
        spec = importlib.machinery.PathFinder.find_spec(fullname, path, target)
        if spec is None:
            return None
        if fullname in sys.modules:  # since the package is loaded
            spec.loader = deferral.HandingOver(sys.modules[fullname])
        elif fullname == deferral.PACKAGE and not self._has_deferred:
            self._has_deferred, spec.loader = True, deferral.Deferring()
        elif type(spec.loader) is importlib.machinery.SourceFileLoader:
            spec.loader = _Loader(spec.loader.name, spec.loader.path)
        return spec


class _Loader(importlib.machinery.SourceFileLoader):
    """Loads a module to which Triton is not installed."""

    def exec_module(self, module: ModuleType) -> None:
        """Executes the module."""
        with _without_triton():
            super().exec_module(module)
