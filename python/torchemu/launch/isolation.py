"""A run whose ranks look to their programs like processes."""

from __future__ import annotations

import contextlib
import functools
import os
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from torchemu.launch import (
    busy_loops,
    caches,
    clock,
    exec_calls,
    exits,
    files,
    loggers,
    package_locks,
    pipes,
    random_state,
    set_orders,
    signals,
    sockets,
    surroundings,
)
from torchemu.launch.descriptors import Descriptors
from torchemu.launch.environment import Environment
from torchemu.launch.importing import Finder
from torchemu.launch.interpreter import Interpreter
from torchemu.launch.modules import Rules, Table
from torchemu.launch.output import Lines
from torchemu.launch.own_attributes import Attributes
from torchemu.launch.process import Process
from torchemu.launch.shared_attributes import SharedAttributes
from torchemu.launch.threads import importing, logs
from torchemu.launch.transfer import Inheritance, Parcel

if TYPE_CHECKING:
    from torchemu.launch.threads.copies import Sources


@dataclass(frozen=True)
class Birth:
    """The state that a started process begins with.

    Attributes:
        interpreter: the state of the one that starts it.
        loggers: their state, where it is forked.
        variables: of its main program, where it is forked.
        loads_main: it loads the main program anew before all else.
    """

    interpreter: Interpreter
    loggers: loggers.Own | None
    variables: Inheritance | None
    loads_main: bool


class Isolation:
    """A context manager. While it is open, what Python keeps once for a process is the running rank's.

    Args:
        seed: of the ranks' random numbers.
        isolate: names of installed packages of which each rank has its own modules, as of the program's files.
        prefix: whether each line that a rank prints names the rank.
        shown: which ranks' output is to be seen.
        stream: where a rank's stdout or stderr goes, given its number, the stream's name and where it would go.
        virtual_clock: whether the module time tells simulated time.
        main_again: what loads the main program anew in the ranks that a rank spawns.
        set_orders: the seed of the orders in which ranks go through sets of strings; None for one that all have.

    Attributes:
        go_to: what changes the working directory of the process.
        exchanges: called when another rank goes on, with the processes, once there is something to be exchanged.
        nowhere: a file for what nobody is to see.
    """

    def __init__(
        self,
        seed: int = 0,
        isolate: Collection[str] = (),
        prefix: bool = False,
        shown: Callable[[int], bool] = lambda _: True,
        virtual_clock: bool = False,
        main_again: Callable[[], None] = lambda: None,
        set_orders: int | None = None,
        stream: Callable[[int, str, Any], Any] = lambda _rank, _name, shown: shown,
    ) -> None:
        self._set_orders, self._stream = set_orders, stream
        self.exchanges: list[Callable[[Process, Process], None]] = []
        self._seed, self._prefix, self._shown, self._main_again = seed, prefix, shown, main_again
        self._rules = Rules(isolate)
        self._parts = [
            random_state,
            exits,
            signals,
            surroundings,
            exec_calls,
            files,
            sockets,
            pipes,
            busy_loops,
            *([clock] if virtual_clock else []),
        ]
        self.go_to = os.chdir

    @functools.cached_property
    def sources(self) -> Sources:
        """Returns the sources that ranks' own modules of Python's library are made of."""
        from torchemu.launch.threads.copies import Sources

        return Sources()

    def __enter__(self) -> Isolation:
        modules = Table(self._rules, self._rules.own(started=False))
        self._outside = self.in_place = Process(self, str(self._seed), Interpreter(), modules)
        with contextlib.ExitStack() as stack:
            stack.callback(self._outside.enter)
            self.nowhere = stack.enter_context(open(os.devnull, "w"))
            finder = Finder(self._rules, modules, self._set_orders is not None)
            for own in (Attributes, Environment, Descriptors):
                own(self.exchanges).install(stack)
            SharedAttributes(self.exchanges).install(stack)
            self._loggers = loggers.Loggers(self.exchanges, self._rules, self._outside)
            self._loggers.install(stack)
            caches.install(stack)
            package_locks.install(stack)
            if self._set_orders is not None:
                set_orders.install(stack, self._set_orders)
            sys.meta_path.insert(0, finder)
            stack.callback(sys.meta_path.remove, finder)
            for part in self._parts:
                part.install(stack)
            importing.install(stack, self._rules)
            logs.install(stack)
            self._undo = stack.pop_all().close
        return self

    def __exit__(self, *_: Any) -> None:
        self._undo()

    def own_names(self) -> frozenset[str]:
        """The names of the program's modules that are loaded outside of ranks."""
        return self._outside.modules.names

    def owns(self, name: str, file: str) -> bool:
        """Reports whether each rank has a module of this name and file for itself."""
        return self._rules.is_own_file(name, file)

    def process(self, rank: int, variables: Mapping[str, str], parent: Process | None = None) -> Process:
        """Returns the state of a rank which has just started: with the parent's environment, or that outside of all
        ranks, and these variables besides."""
        parent = parent or self._outside
        interpreter = parent.interpreter.copy()
        interpreter.setenv(variables)
        return self._started(rank, interpreter, parent)

    def _started(self, rank: int, interpreter: Interpreter, parent: Process) -> Process:
        interpreter.stdout = self._output(rank, "stdout")
        interpreter.stderr = self._output(rank, "stderr")
        modules = Table(self._rules, self._outside.modules.main())
        return Process(self, f"{parent.key}/{rank}", interpreter, modules)

    def birth(self, parent: Process, method: str) -> Birth:
        """Returns the state that a process begins with which the rank in place starts now; see Process.birth."""
        forked = method == "fork"
        parent.interpreter.save()  # its sys.argv and sys.path may be other ones than it started with
        parent.modules.save()
        variables = Inheritance(vars(sys.modules["__main__"]), parent.modules.names) if forked else None
        own = self._loggers.forked(parent) if forked else None
        interpreter = parent.interpreter.copy()
        if method == "program":
            interpreter.path = list(self._outside.interpreter.path)
        return Birth(interpreter, own, variables, method != "program")

    def _output(self, rank: int, name: str) -> Any:
        shown = getattr(self._outside.interpreter, name) if self._shown(rank) else self.nowhere
        return Lines(self._stream(rank, name, shown), f"[rank{rank}]: " if self._prefix else "")

    def spawned(
        self, parent: Process, call: tuple[Callable[..., Any], *tuple[Any, ...]], births: Sequence[Birth]
    ) -> tuple[Callable[..., Any], list[Process]]:
        """Returns the function to call in the ranks that a rank starts for a call, and their processes; see
        Process.spawned. As with PyTorch they load the main program anew, as ``__mp_main__``, and know of its objects
        what pickle takes there; forked ones know the values of its variables, too, and are quiet while they load it."""
        parent.modules.save()
        own = parent.modules.names
        together = Parcel(call, own, apart=True)
        parcels = [] if together.is_packed() else [Parcel(value, own, apart=True) for value in call]

        def child(rank: int) -> None:
            inherited = births[rank].variables
            with contextlib.ExitStack() as quiet:
                if inherited is not None:
                    quiet.enter_context(contextlib.redirect_stdout(self.nowhere))
                if births[rank].loads_main:
                    self._main_again()
            if inherited is not None:
                inherited.put_into(vars(sys.modules["__main__"]))
            function, *arguments = [parcel.open() for parcel in parcels] or together.open()
            if inherited is not None:
                function = inherited.bound(function, vars(sys.modules["__main__"]))
            function(rank, *arguments)

        return child, [self._born(rank, birth, parent) for rank, birth in enumerate(births)]

    def _born(self, rank: int, birth: Birth, parent: Process) -> Process:
        process = self._started(rank, birth.interpreter.copy(), parent)
        if birth.loggers is not None:
            self._loggers.begin(process, birth.loggers)
        return process
