"""Threads of ranks: further tasks of a rank, which take turns with the tasks of all ranks.

Deadlines, and sleeps, are in simulated time. They make none pass while something else can happen: see
multiprocessing/patience.go.
"""

from __future__ import annotations

import math
import sys
from _thread import get_ident
from collections.abc import Callable
from typing import Any

from torchemu import runtime
from torchemu.bridge import interrupts
from torchemu.bridge.binding import go
from torchemu.runtime import fibers, waiting
from torchemu.runtime.thread_state import KEPT
from torchemu.runtime.waiting import Line, Waiter

_PS_PER_SECOND = 10**12
_MOST = 2**63 - 1
_FOR_EVER = _NOBODY = -1  # of go.NewWaitWithin


class Thread:
    """A thread of a rank, besides its main program's.

    Args:
        threads: those of the rank.
        name: for reports.
        daemon: nobody waits for its end.
        call: what it does, which raises nothing.

    Attributes:
        ident: its number, as threading knows it.
        task: its number in the scheduler.
        greenlet: what it runs on.
        has_ended: whether it has.
        when_ended: what is called then.
    """

    def __init__(self, threads: Threads, name: str, daemon: bool, call: Callable[[], None]) -> None:
        context = threads.context
        assert context.tasks is not None  # only spawned ranks have threads
        self.name, self.context, self.threads = name, context, threads
        self._tasks, self._call = context.tasks, call
        self.ident = next(context.world.pids)
        self.task: int = go.BeginThread(self._tasks.scheduler, context.rank, name, daemon)
        kind = context.world.fibers
        self.greenlet = kind.new(self._body, self._tasks.loop)
        self._is_traced_apart = isinstance(kind, fibers.Threads)
        self.has_ended = False
        self._tracing: tuple[Any, Any] | None = None  # None before it has begun: as others are
        self.when_ended: list[Callable[[], None]] = []
        self._tasks.threads[self.task] = threads.living[self.task] = self

    def _body(self) -> None:
        try:
            self._call()
        finally:
            self._end()

    def _end(self) -> None:
        self.has_ended = True
        del self._tasks.threads[self.task], self.threads.living[self.task]
        go.Exit(self._tasks.scheduler, self.task)
        for call in self.when_ended:
            call()

    def go_on(self) -> None:
        """Switches to it until it waits or ends. What it traces itself by, nobody else is traced by."""
        if self._is_traced_apart:
            self.greenlet.switch()
            return
        others = sys.gettrace(), sys.getprofile()
        _trace_by(*(self._tracing or others))
        self.greenlet.switch()
        self._tracing = sys.gettrace(), sys.getprofile()
        _trace_by(*others)

    def drop(self, error: BaseException) -> None:
        """Ends it where it waits, by an exception that its waits raise again until it has ended. It is in place."""
        if not self.greenlet:  # it has not begun
            self._end()
            return
        self.greenlet.parent = self.context.world.fibers.current()
        self.greenlet.throw(error)


def _trace_by(trace: Any, profile: Any) -> None:
    """Sets the functions of sys.settrace and sys.setprofile, where they are not."""
    if sys.gettrace() is not trace:
        sys.settrace(trace)
    if sys.getprofile() is not profile:
        sys.setprofile(profile)


class _Own:
    """The state of a thread while others of its rank run; at first, the one in place."""

    def __init__(self, context: runtime.Context) -> None:
        self.device, self.stream = context.device, context.stream
        self.of_thread = context.of_thread
        self.kept = [kept.save() for kept in KEPT]
        asyncio = sys.modules.get("_asyncio")
        self.loop: Any = asyncio._get_running_loop() if asyncio is not None else None
        self.thread = get_ident()

    def restore(self, context: runtime.Context) -> None:
        """Puts it in place."""
        context.device, context.stream = self.device, self.stream
        context.of_thread = self.of_thread
        for kept, value in zip(KEPT, self.kept, strict=True):
            kept.restore(value)
        asyncio = sys.modules.get("_asyncio")
        if asyncio is not None and self.thread == get_ident():  # threads of the system have loops of their own
            asyncio._set_running_loop(self.loop)


class _First(_Own):
    """The state that a new thread begins with."""

    def __init__(self, context: runtime.Context) -> None:
        self.device, self.stream = context.first_device, context.first_stream
        self.of_thread = {}
        self.kept = [kept.first() for kept in KEPT]
        is_apart = isinstance(context.world.fibers, fibers.Threads)  # and so has a loop of its own: none
        self.loop, self.thread = None, 0 if is_apart else get_ident()


class Threads:
    """The threads of one rank.

    Attributes:
        context: the rank's.
        running: the one that runs when the rank does; None is the main program's.
        living: those that have not ended, by task, in the order in which they began.
        ending: the program has ended, and waits for those that are no daemons.
    """

    def __init__(self, context: runtime.Context) -> None:
        self.context = context
        self.ending = False
        self.running: Thread | None = None
        self.living: dict[int, Thread] = {}
        self._own: dict[Thread | None, _Own] = {}  # of all but the running one

    def begin(self, name: str, daemon: bool, call: Callable[[], None]) -> Thread:
        """Starts one, which runs when the running one waits."""
        thread = Thread(self, name, daemon, call)
        self._own[thread] = _First(self.context)
        return thread

    def enter(self, thread: Thread | None) -> None:
        """Puts in place what one has of its own, where it is not. The rank is the running one."""
        before = self.running
        if thread is before:
            return
        context = self.context
        with interrupts.unbroken:
            if before is None or not before.has_ended:
                self._own[before] = _Own(context)
            self._own.pop(thread).restore(context)
            self.running = thread
            context.task = context.rank if thread is None else thread.task


def of_rank() -> Threads:
    """Returns the threads of the running rank."""
    context = runtime.current()
    if context.threads is None:
        context.threads = Threads(context)
    return context.threads


def running() -> Thread | None:
    """The thread that runs; None for the main program's."""
    return runtime.current().thread


def may_switch() -> None:
    """Lets the schedule run others here, where the running thread need not wait. First in, first out it goes on."""
    context = runtime.present()
    if context is None or context.threads is None or not context.threads.living or context.tasks is None:
        return
    tasks, thread = context.tasks, context.threads.running
    if thread is not None and thread.has_ended:
        return
    if context.world.schedule != "fifo" and context.world.fibers.current() is not tasks.loop:
        tasks.let_others_run(context.task)


def picoseconds(seconds: float) -> int:
    """At least one, so that whoever asks for very little again and again gets on; at most what the core can count."""
    return min(max(math.ceil(seconds * _PS_PER_SECOND), 1), _MOST)


class Places(Line):
    """Threads of one rank that wait for the same thing, first come first served."""

    is_seen = True

    def is_called(self, what: str, seconds: float | None, holder: int = _NOBODY) -> bool:
        """Blocks this thread until it is called, and says whether it was in time.

        Args:
            what: what it waits for, for the report of a deadlock.
            seconds: of simulated time; None is for ever.
            holder: the task of the thread that is to call it, where that is known.
        """
        context = runtime.current()
        ps = _FOR_EVER if seconds is None else picoseconds(seconds)
        threads = context.threads
        kind = "end" if threads is not None and threads.ending and threads.running is None else "lock"
        waiter = Waiter(go.NewWaitWithin(context.world.handle, context.rank, ps, what, kind, holder))
        self._waiters.append(waiter)
        try:
            context.wait_within(waiter.signal)
        finally:
            if not waiter.called:
                self._waiters.remove(waiter)
            go.Release(waiter.signal)
        return waiter.called


def sleep(ps: int, what: str, really: bool) -> None:
    """Blocks this thread until simulated time has passed.

    Args:
        ps: how much.
        what: what it does, for the report of a deadlock.
        really: the process is to sleep as well, where it has nothing else to do.
    """
    context = runtime.current()
    kind = "sleep" if really else "lock"
    end = go.NewWaitWithin(context.world.handle, context.rank, ps, what, kind, _NOBODY)
    try:
        context.wait_within(end)
    finally:
        go.Release(end)


class Looks(waiting.Looks):
    """Questions of a thread, perhaps in a loop, whether another one of its rank has done something."""

    __slots__ = ()

    def in_vain(self, what: str) -> None:
        """Lets the time of a look pass; what is what it looks for, for reports."""
        sleep(self.longer(), what, False)
