"""A run whose ranks look to their programs like processes."""

from __future__ import annotations

import contextlib
import functools
import importlib
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Collection, Mapping
from typing import Any

from torchemu.run import clock, exits, random_state
from torchemu.run.importing import Finder
from torchemu.run.interpreter import Interpreter
from torchemu.run.modules import Rules, Table
from torchemu.run.output import Lines
from torchemu.run.patches import current, replace
from torchemu.run.process import Process
from torchemu.run.transfer import Parcel

ISOLATED = ("megatron",)
"""Installed packages whose modules each rank has for itself: they keep a rank's state in module globals."""


class Isolation:
    """A context manager. While it is open, what Python keeps once for a process is the running rank's.

    Args:
        seed: of the ranks' random numbers.
        isolate: names of installed packages of which each rank has its own modules, as of the program's files.
        prefix: whether each line that a rank prints names the rank.
        shown: which ranks' output is to be seen.
        virtual_clock: whether the module time tells simulated time.
        main_again: what loads the main program anew in the ranks that a rank spawns.
    """

    def __init__(
        self,
        seed: int = 0,
        isolate: Collection[str] = ISOLATED,
        prefix: bool = False,
        shown: Callable[[int], bool] = lambda _: True,
        virtual_clock: bool = False,
        main_again: Callable[[], None] = lambda: None,
    ) -> None:
        self._seed, self._prefix, self._shown, self._main_again = seed, prefix, shown, main_again
        self._rules = Rules(isolate)
        self._parts = [random_state, exits, clock] if virtual_clock else [random_state, exits]
        self._stack = contextlib.ExitStack()
        self.go_to = os.chdir

    def __enter__(self) -> Isolation:
        importlib.import_module("torchemu._namespace")  # on nobody's sys.path but our own
        modules = Table(self._rules, self._rules.own(started=False))
        self._outside = self.in_place = Process(self, str(self._seed), Interpreter(), modules)
        self._stack.callback(self._outside.enter)
        self._nowhere = self._stack.enter_context(open(os.devnull, "w"))
        finder = Finder(self._rules, modules)
        sys.meta_path.insert(0, finder)
        self._stack.callback(sys.meta_path.remove, finder)
        for part in self._parts:
            part.install(self._stack)
        _keep_environments_apart(self._stack)
        _keep_folders_apart(self._stack)
        _refuse_threads(self._stack)
        return self

    def __exit__(self, *_: Any) -> None:
        self._stack.close()

    def own_names(self) -> frozenset[str]:
        """The names of the program's modules that are loaded outside of ranks."""
        return self._outside.modules.names

    def process(self, rank: int, variables: Mapping[str, str], parent: Process | None = None) -> Process:
        """That of a rank which has just started: with the parent's environment, or that outside of all ranks, and
        these variables besides."""
        parent = parent or self._outside
        interpreter = parent.interpreter.copy()
        interpreter.setenv(variables)
        interpreter.stdout = self._output(rank, self._outside.interpreter.stdout)
        interpreter.stderr = self._output(rank, self._outside.interpreter.stderr)
        modules = Table(self._rules, self._outside.modules.main())
        return Process(self, f"{parent.key}/{rank}", interpreter, modules)

    def _output(self, rank: int, target: Any) -> Any:
        return Lines(target if self._shown(rank) else self._nowhere, f"[rank{rank}]: " if self._prefix else "")

    def spawned(
        self, parent: Process, nprocs: int, fn: Callable[..., Any], args: tuple[Any, ...]
    ) -> tuple[Callable[..., Any], list[Process]]:
        """What to call in the ranks that a rank spawns to call ``fn(rank, *args)``, and their processes. As with
        PyTorch they load the main program anew, as ``__mp_main__``, and know of its objects what pickle takes there."""
        parent.modules.save()
        own = parent.modules.names
        parcels = [Parcel(value, own) for value in (fn, *args)]

        def child(rank: int) -> None:
            self._main_again()
            function, *arguments = [parcel.open() for parcel in parcels]
            function(rank, *arguments)

        return child, [self.process(rank, {}, parent) for rank in range(nprocs)]


def _keep_environments_apart(stack: contextlib.ExitStack) -> None:
    """Makes the variables that a rank sets its own, and those of the programs that it starts."""
    for name in ("putenv", "unsetenv"):
        replace(stack, os, name, _outside_only(getattr(os, name)))
    start = subprocess.Popen.__init__
    env_position = 10

    @functools.wraps(start)
    def popen(self: Any, *args: Any, **kwargs: Any) -> None:
        if current() is not None and len(args) <= env_position and kwargs.get("env") is None:
            kwargs["env"] = dict(os.environ)
        start(self, *args, **kwargs)

    replace(stack, subprocess.Popen, "__init__", popen)


def _outside_only(function: Callable[..., None]) -> Callable[..., None]:
    @functools.wraps(function)
    def call(*args: Any) -> None:
        if current() is None:
            function(*args)

    return call


def _keep_folders_apart(stack: contextlib.ExitStack) -> None:
    """Makes the working directory that a rank changes to its own."""
    for name in ("chdir", "fchdir"):
        replace(stack, os, name, _noting_folder(getattr(os, name)))


def _noting_folder(change: Callable[[Any], None]) -> Callable[[Any], None]:
    @functools.wraps(change)
    def call(path: Any) -> None:
        change(path)
        process = current()
        if process is not None:
            process.folder = os.getcwd()

    return call


def _refuse_threads(stack: contextlib.ExitStack) -> None:
    start = threading.Thread.start

    @functools.wraps(start)
    def refused(self: threading.Thread) -> None:
        process = current()
        if process is not None:
            raise RuntimeError(
                f"cannot start thread {self.name!r}: the ranks of torchemu take turns on one thread, and only the "
                "running one's modules and environment are in place; do the work in the rank itself"
            )
        start(self)

    replace(stack, threading.Thread, "start", refused)
