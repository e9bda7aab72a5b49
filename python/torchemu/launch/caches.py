"""Functions of installed packages remember things of their process: each rank's are its own.

A package is loaded once, and a function of it without parameters that remembers its answer, ``get_rank`` say, would
give all ranks the first one's; one of a module that uses torch, a mask on the first one's device.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import sys
import types
import weakref
from collections.abc import Callable
from typing import Any

from torchemu.launch.patches import current, replace

_real = functools.lru_cache


class _Nobody:
    """Stands for a process where no rank runs."""


_NOBODY = _Nobody()


class Remembering:
    """A function that remembers its answers, which are others for each rank: functools.lru_cache of it.

    Args:
        function: the function.
        maxsize, typed: as of functools.lru_cache.
    """

    def __init__(self, function: Callable[..., Any], maxsize: int | None, typed: bool) -> None:
        functools.update_wrapper(self, function)
        self._about = maxsize, typed
        self._caches: weakref.WeakKeyDictionary[Any, Any] = weakref.WeakKeyDictionary()

    def _own(self) -> Any:
        process = current() or _NOBODY
        found = self._caches.get(process)
        if found is None:
            found = self._caches[process] = _real(*self._about)(self.__wrapped__)
        return found

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._own()(*args, **kwargs)

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else types.MethodType(self, instance)

    def __reduce__(self) -> str:
        return str(self.__qualname__)

    def __getattr__(self, name: str) -> Any:
        if name not in ("cache_info", "cache_clear", "cache_parameters"):
            raise AttributeError(name)
        return getattr(self._own(), name)


def _lru_cache(maxsize: Any = 128, typed: bool = False) -> Any:
    """functools.lru_cache."""
    if callable(maxsize):
        return _decorated(maxsize, 128, typed)
    return lambda function: _decorated(function, maxsize, typed)


def _cache(function: Callable[..., Any], /) -> Any:
    """functools.cache."""
    return _decorated(function, None, False)


def _decorated(function: Any, maxsize: int | None, typed: bool) -> Any:
    is_other = not inspect.isfunction(function) or (
        inspect.signature(function).parameters and not _uses_torch(function)
    )
    if is_other or function.__module__.partition(".")[0] in {*sys.stdlib_module_names, "torch", "torchemu"}:
        return _real(maxsize, typed)(function)
    return Remembering(function, maxsize, typed)


def _uses_torch(function: types.FunctionType) -> bool:
    """Reports whether a function's module has imported torch: what it remembers may be on a device."""
    name = getattr(function.__globals__.get("torch"), "__name__", "")
    return str(name).partition(".")[0] in ("torch", "torchemu")


def install(stack: contextlib.ExitStack) -> None:
    """Lets packages that are loaded from now on remember for each rank, until the stack is closed."""
    replace(stack, functools, "lru_cache", _lru_cache)
    replace(stack, functools, "cache", _cache)
