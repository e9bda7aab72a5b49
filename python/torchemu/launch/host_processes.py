"""Python's own multiprocessing: of a program that starts its ranks itself by it, and of processes that hold no rank."""

from __future__ import annotations

import atexit
import contextlib
import functools
import multiprocessing
import multiprocessing.context
import multiprocessing.spawn
import os
import types
from concurrent.futures import process as executors
from multiprocessing import get_context as system_context  # Python's, also while a run has replaced it
from typing import Any

import torchemu.multiprocessing
from torchemu.frontends import stand_ins
from torchemu.launch import children
from torchemu.launch.patches import replace
from torchemu.multiprocessing._start import StartContext, get_start_method, set_start_method

_NAMES = [
    "Array",
    "Barrier",
    "BoundedSemaphore",
    "Condition",
    "Event",
    "JoinableQueue",
    "Lock",
    "Manager",
    "Pipe",
    "Pool",
    "Process",
    "Queue",
    "RLock",
    "Semaphore",
    "SimpleQueue",
    "Value",
    "active_children",
    "current_process",
    "get_all_start_methods",
    "get_context",
    "get_start_method",
    "parent_process",
    "set_start_method",
]


def install(stack: contextlib.ExitStack) -> None:
    """Makes it torch.multiprocessing's until the stack is closed: processes of the system would be in no World.

    Only for a run of one rank. Where there are several, they cannot start ranks, and Python's processes work as they
    do, for what has nothing to do with the World. Pools' processes are the system's in any case.
    """
    replace(stack, executors, "mp", _of_executors())
    for name in _NAMES:
        replace(stack, multiprocessing, name, getattr(torchemu.multiprocessing, name))


def _of_executors() -> types.SimpleNamespace:
    """Returns what ProcessPoolExecutor knows as multiprocessing: Python's, with the start method of the program."""

    def get_context(method: str | None = None) -> Any:
        return system_context(method or torchemu.multiprocessing.get_start_method())

    return types.SimpleNamespace(**{**vars(multiprocessing), "get_context": get_context})


def install_beside(stack: contextlib.ExitStack, torch: str) -> None:
    """Lets processes of the system that are started anew import what ranks do, and have the variables of the one that
    starts them, until the stack is closed.

    Args:
        torch: the value of ``--torch``.
    """
    real = multiprocessing.spawn.get_preparation_data

    def prepared(name: str) -> dict[str, Any]:
        return {"torchemu": _Prepared(torch, dict(os.environ)), **real(name)}

    replace(stack, multiprocessing.spawn, "get_preparation_data", prepared)
    children.install(stack)
    _separate_start_methods(stack)
    _let_executors_take_contexts(stack)


class _OfRank:
    """The context that a program has chosen for its processes, by Python's name or by PyTorch's: each rank its own."""

    def __get__(self, default: Any, kind: type | None = None) -> Any:
        method = get_start_method(allow_none=True)
        return None if method is None else system_context(method)

    def __set__(self, default: Any, chosen: Any) -> None:
        set_start_method(None if chosen is None else chosen.get_start_method(), force=True)


def _separate_start_methods(stack: contextlib.ExitStack) -> None:
    """Lets each rank set its start method once, until the stack is closed."""
    kind: Any = multiprocessing.context.DefaultContext
    kind._actual_context = _OfRank()
    stack.callback(delattr, kind, "_actual_context")


def _let_executors_take_contexts(stack: contextlib.ExitStack) -> None:
    """Makes ProcessPoolExecutor take PyTorch's contexts, of which only the way of starting processes is for it."""
    real = executors.ProcessPoolExecutor.__init__

    @functools.wraps(real)
    def init(
        self: executors.ProcessPoolExecutor,
        max_workers: int | None = None,
        mp_context: Any = None,
        *args: Any,
        **options: Any,
    ) -> None:
        if isinstance(mp_context, StartContext):
            mp_context = system_context(mp_context.get_start_method())
        real(self, max_workers, mp_context, *args, **options)

    replace(stack, executors.ProcessPoolExecutor, "__init__", init)


class _Prepared:
    """It is unpickled before the process loads the program.

    Args:
        torch: the value of ``--torch``.
        variables: the environment.
    """

    def __init__(self, torch: str, variables: dict[str, str]) -> None:
        self._torch, self._variables = torch, variables

    def __reduce__(self) -> tuple[Any, ...]:
        return _prepare, (self._torch, self._variables)


def _prepare(torch: str, variables: dict[str, str]) -> None:
    """Gives this process the stand-ins, to its end, and the variables."""
    stack = contextlib.ExitStack()
    stack.enter_context(stand_ins.installed(torch))
    atexit.register(stack.close)
    os.environ.clear()
    os.environ.update(variables)
