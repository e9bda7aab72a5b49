"""State of the interpreter that a rank has for itself, as if it were a process."""

from __future__ import annotations

import functools
import os
import sys
import threading
import types
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from torchemu.launch.exits import Exits, ImmediateExit
from torchemu.launch.interpreter import Interpreter
from torchemu.launch.modules import Table
from torchemu.launch.output import Lines
from torchemu.launch.random_state import RandomState
from torchemu.runtime import tasks
from torchemu.runtime.tasks import Signalled, Unwound
from torchemu.runtime.waiting import Looks

if TYPE_CHECKING:
    from torchemu.launch.isolation import Birth, Isolation
    from torchemu.launch.threads.copies import Copies

_PATIENCE = 200
"""Looks at one thing, with nothing between them that takes the rank's time, after which others run."""
_THINGS = 10_000
"""How many things are told apart."""


class Process:
    """One rank's. It is in place in the interpreter while the rank runs, and kept here while others do.

    Args:
        isolation: that of the run.
        key: decides the rank's random numbers.
        interpreter: the state that the rank starts with.
        modules: the modules that the rank starts with.

    Attributes:
        folder: the working directory.
        handlers: of signals, by number, that the program has set.
        signals_due: the numbers of those that have come and are to be handled when the rank goes on.
        thread: the number of the thread that runs it.
        clock_reads: how often the rank has read a clock since has_read_clock was asked.
        looked_at: when, on the rank's host, it has last looked at a file or a flag.
        removed_at: when it has last removed files.
        went_round_at: when it has last gone round a loop a great many times.
        rounds: how long others run then.
        sleeps, last_sleep: the same of sleeps: how often, and when the last one ended.
        umask: what the rank has set; None for what was there.
        limits: those that it has lowered, by the numbers of the module resource.
        descriptors: standard ones that the rank has replaced by copies of others, or closed: None.
        watches: see torchemu.runtime.Process.
        alarm: when, on the wall's clock, the rank is to get SIGALRM, 0 for never, and how long after that again.
    """

    def __init__(self, isolation: Isolation, key: str, interpreter: Interpreter, modules: Table) -> None:
        self.key, self.interpreter, self.modules = key, interpreter, modules
        self.folder, self.thread = os.getcwd(), threading.get_ident()
        self._output, self._excepthook = (interpreter.stdout, interpreter.stderr), interpreter.excepthook
        self.random = RandomState(key)
        self.exits = Exits()
        self.handlers: dict[int, Any] = {}
        self.signals_due: list[int] = []
        self._isolation = isolation
        self.clock_reads = self.sleeps = 0
        self.umask: int | None = None
        self.limits: dict[int, tuple[int, int]] = {}
        self.descriptors: dict[int, int | None] = {}
        self.looked_at = self.removed_at = -1
        self.went_round_at, self.rounds = -1, Looks()
        self._looks: dict[tuple[str, str], int] = {}  # how often, with nothing between that takes the rank's time
        self.package_called: types.FrameType | None = None  # by the program, and has looked in vain
        self.last_sleep = -1
        self.watches = False
        self.alarm = (0.0, 0.0)

    @functools.cached_property
    def copies(self) -> Copies:
        """The modules of Python's library that the rank has of its own."""
        from torchemu.launch.threads.copies import Copies

        return Copies(self._isolation.sources)

    def _run(self, fn: Callable[..., Any], rank: int, *args: Any) -> None:
        try:
            fn(rank, *args)
        except (ImmediateExit, Signalled):
            raise
        except SystemExit:
            self._join_threads()
            raise
        self._join_threads()

    def _join_threads(self) -> None:
        """Waits until the threads have ended that the program waits for at its end."""
        threading = self.copies.find("threading") if "copies" in vars(self) else None
        if threading is None:
            return
        from torchemu.runtime import threads

        threads.of_rank().ending = True
        threading._shutdown()

    def enter(self) -> None:
        """Puts it in place of the one that is."""
        before = self._isolation.in_place
        if before is self:
            return
        before.interpreter.save()
        before.modules.save()
        for exchange in self._isolation.exchanges:
            exchange(before, self)
        self.modules.restore(instead_of=before.modules)
        self.interpreter.restore()
        if self.folder != before.folder:
            self._isolation.go_to(self.folder)
        self._isolation.in_place = self

    def owns(self, name: str, file: str) -> bool:
        """Reports whether the rank has a module of this name and file for itself."""
        return self._isolation.owns(name, file)

    def has_read_clock(self) -> bool:
        """Returns whether the rank has read a clock since this was asked last."""
        reads, self.clock_reads = self.clock_reads, 0
        return reads > 0

    def looks_again(self, call: str, path: str, now: int) -> int:
        """Returns how often the rank has looked at one thing, with nothing between, since others were to run first.

        Args:
            call: how it looks.
            path: of what it looks at.
            now: the time on the rank's host.
        """
        if now != self.looked_at or len(self._looks) > _THINGS:
            self._looks.clear()
        self.looked_at = now
        times = self._looks[call, path] = self._looks.get((call, path), 0) + 1
        return max(times - _PATIENCE, 0)

    def handle_signals(self) -> None:
        """Calls the program's handlers of the signals that are due."""
        while self.signals_due:
            number = self.signals_due.pop(0)
            self.handlers[number](number, sys._getframe(1))

    def interrupt(self, frame: types.FrameType | None) -> None:
        """Calls the handlers, except where a signal has interrupted the schedule: one that raised there would end the
        run. The schedule calls them when the rank goes on.

        Args:
            frame: what ran when the signal came.
        """
        if not _is_of_schedule(frame):
            self.handle_signals()

    def call(self, fn: Callable[..., Any], rank: int, *args: Any) -> None:
        """Runs the rank's program to its end and what is due then. To be unwound is to be killed: nothing is due."""
        try:
            self._run(fn, rank, *args)
        except (Unwound, ImmediateExit, Signalled):
            raise
        except BaseException as error:
            self._hand_to_hook(error)
            self.exits.run()
            raise
        else:
            self.exits.run()
        finally:
            for stream in (sys.stdout, sys.stderr, *self._output):
                if stream is not None and not getattr(stream, "closed", False):
                    stream.flush()

    def _hand_to_hook(self, error: BaseException) -> None:
        """Calls the program's sys.excepthook, if it has one. The run reports the error all the same."""
        if sys.excepthook is not self._excepthook and not isinstance(error, SystemExit):
            sys.excepthook(type(error), error, error.__traceback__)

    def hush(self) -> None:
        """Lets nobody see what is printed from now on. Python's threads just stop where they are."""
        sys.stdout = sys.stderr = self._isolation.nowhere

    def silence(self) -> None:
        """Lets nobody see what is printed from now on, also to streams that the program has kept from before."""
        for stream in self._output:
            if isinstance(stream, Lines) and not stream.closed:
                stream.turn_to(self._isolation.nowhere)

    def birth(self, method: str) -> Birth:
        """Returns the state that a process begins with which this one starts now. Of the ways of starting it, "fork"
        makes it a copy, and "program" lets it run another program than the main one."""
        return self._isolation.birth(self, method)

    def spawned(
        self, call: tuple[Callable[..., Any], *tuple[Any, ...]], births: Sequence[Birth]
    ) -> tuple[Callable[..., Any], list[Process]]:
        """Returns the function to call in ranks that this one starts, and their processes.

        Args:
            call: what they are to call, with the rank and then the other arguments here.
            births: what each begins with.
        """
        return self._isolation.spawned(self, call, births)


def _is_of_schedule(frame: types.FrameType | None) -> bool:
    """Returns whether a frame has been called, by a rank's program or by none, to choose who goes on."""
    while frame is not None and frame.f_code is not Process.call.__code__:
        if frame.f_globals is vars(tasks):
            return True
        frame = frame.f_back
    return False
