"""Pools of threads that PyTorch and other packages start: their threads are in the schedule, as the rank's own. Pools
of processes are beside it."""

from __future__ import annotations

import concurrent.futures
import concurrent.futures.process
import concurrent.futures.thread
import functools
import logging.handlers
import sys
import threading
import types
from concurrent.futures import _base
from typing import Any

from torchemu import runtime
from torchemu.frontends.torch.session import Session
from torchemu.runtime.process_futures import OfProcess, wait_beside_schedule

_POOL = "concurrent.futures.thread"

_real = concurrent.futures.ThreadPoolExecutor


def _of_rank(name: str) -> types.ModuleType | None:
    """Returns the running rank's own module of Python's library; None outside of ranks."""
    process: Any = runtime.process() if runtime.running() is not None else None
    return None if process is None else process.copies.load(name)


def _pool(cls: type, *args: Any, **kwargs: Any) -> Any:
    """Makes a ThreadPoolExecutor: in ranks, one of the rank's own copy of Python's module."""
    module: Any = _of_rank(_POOL) if cls is _real else None
    return object.__new__(cls) if module is None else module.ThreadPoolExecutor(*args, **kwargs)


class _Threading:
    """The module threading, for those of Python's library who wait or have threads: in ranks, the rank's own."""

    def __getattr__(self, name: str) -> Any:
        return getattr(_of_rank("threading") or threading, name)


class _Futures:
    """The module of futures, as pools of processes have it."""

    Future = OfProcess

    def __getattr__(self, name: str) -> Any:
        return getattr(_base, name)


def _get(self: Any, instance: Any, owner: Any = None) -> Any:
    """functools.cached_property without the lock that it had before Python 3.12: a rank that waits while it computes a
    property would hold it."""
    if instance is None:
        return self
    kept = instance.__dict__
    if self.attrname not in kept:
        kept[self.attrname] = self.func(instance)
    return kept[self.attrname]


def install(run: Session) -> None:
    """Makes threads of pools in ranks the ranks', until the run ends."""
    _real.__new__ = staticmethod(_pool)  # type: ignore[method-assign] # and stays: Python forgets no __new__
    run.replace(_base, "threading", _Threading())
    run.replace(logging.handlers, "threading", _Threading())  # QueueListener has a thread
    run.replace(_base, "_create_and_install_waiters", wait_beside_schedule(_base))
    run.replace(concurrent.futures.process, "_base", _Futures())
    if sys.version_info < (3, 12):
        run.replace(functools.cached_property, "__get__", _get)
