"""Threads that PyTorch starts: they are further threads of the rank, in the schedule."""

from __future__ import annotations

import concurrent.futures
import importlib.machinery
import sys
import types
from collections.abc import Sequence
from typing import Any

from torchemu import runtime
from torchemu.frontends.torch.session import Session

_STARTING = {"torch.distributed.checkpoint._async_thread_executor": ("ThreadPoolExecutor",)}
"""Modules that start threads, and by what."""

_MODULE = "concurrent.futures.thread"


def _pool(*args: Any, **kwargs: Any) -> Any:
    """A ThreadPoolExecutor: in ranks, of the rank's own copy of Python's module."""
    process: Any = runtime.process()
    module = concurrent.futures if process is None else process.copies.load(_MODULE)
    return module.ThreadPoolExecutor(*args, **kwargs)


_INSTEAD = {"ThreadPoolExecutor": _pool}


class _Loader(importlib.machinery.SourceFileLoader):
    """Loads a module, and gives it what starts threads of ranks."""

    def exec_module(self, module: types.ModuleType) -> None:
        super().exec_module(module)
        _change(module)


def _change(module: types.ModuleType) -> None:
    for name in _STARTING[module.__name__]:
        setattr(module, name, _INSTEAD[name])


class _Finder:
    """Finds those modules."""

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: Any = None
    ) -> importlib.machinery.ModuleSpec | None:
        """Returns the spec of one of them; None for others."""
        if name not in _STARTING:
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path, target)
        if spec is not None and type(spec.loader) is importlib.machinery.SourceFileLoader:
            spec.loader = _Loader(spec.loader.name, spec.loader.path)
        return spec


def install(run: Session) -> None:
    """Makes threads that PyTorch starts in ranks the ranks', until the run ends."""
    for name in _STARTING:
        if name in sys.modules:
            _change(sys.modules[name])
    finder = _Finder()
    sys.meta_path.insert(0, finder)
    run.stack.callback(sys.meta_path.remove, finder)
