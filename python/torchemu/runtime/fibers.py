"""Flows of control that hand over to each other: greenlets, or threads of the system of which one runs at a time.

Greenlets are faster. Threads are for front ends whose libraries keep state by thread, as PyTorch does: gradient modes,
dispatch modes and the autograd engine are the thread's. Both have greenlet's interface, so far as it is used here.
"""

from __future__ import annotations

import _thread
import ctypes
import os
import threading
import time
from collections.abc import Callable
from typing import Any, Protocol

import greenlet

from torchemu.bridge import interrupts
from torchemu.bridge.batons import Baton
from torchemu.bridge.binding import go

_NAP = 0.1  # seconds
_monotonic = time.monotonic  # the process's: programs may get to see another one


class NoThreadsError(RuntimeError):
    """The system starts no more threads."""


class Fiber(Protocol):
    """A flow of control. It is true from its first switch to its end."""

    dead: bool
    parent: Any

    def switch(self, *args: Any) -> Any:
        """Lets it go on, or begin with these arguments, and returns when somebody switches back."""

    def throw(self, *error: Any) -> Any:
        """Switches to it and raises the exception there."""


class Kind(Protocol):
    """A way of making fibers."""

    def new(self, body: Callable[..., None], parent: Any) -> Fiber:
        """A fiber that runs the body; its end switches to the parent."""

    def current(self) -> Fiber:
        """The one that runs."""

    def runs(self, fiber: Any) -> bool:
        """Reports whether it is this one's turn. Who asks may be the main thread, as it hears of Ctrl-C."""

    def go_on(self) -> None:
        """Tells the running one that it is another rank from now on."""

    def thread(self) -> int:
        """Returns the number of the thread whose turn it is. Who asks may be another thread."""

    def interrupt_in(self, fiber: Any, interrupt: interrupts.CtrlC) -> None:
        """Raises Ctrl-C in a fiber that does not wait, as soon as it runs Python. Who asks is another thread."""

    def sleep(self, seconds: float, really: Callable[[float], None]) -> None:
        """Sleeps on the running fiber's thread, all the others with it, until Ctrl-C is raised in it.

        Args:
            seconds: how long.
            really: the system's sleep.
        """

    def on_main_thread(self, function: Callable[[], object]) -> bool:
        """Calls a function on the process's main thread, on which alone handlers of signals are set. Returns false
        where that is none of those that take turns."""


class Greenlets:
    """Fibers as greenlets of one thread, which makes this."""

    def __init__(self) -> None:
        self._thread = _thread.get_ident()

    def new(self, body: Callable[..., None], parent: Any) -> Fiber:
        """A greenlet."""
        made: Fiber = greenlet.greenlet(body, parent)
        return made

    def current(self) -> Fiber:
        """The running greenlet."""
        running: Fiber = greenlet.getcurrent()
        return running

    def runs(self, fiber: Any) -> bool:
        """Compares it with the running greenlet."""
        return greenlet.getcurrent() is fiber

    def go_on(self) -> None:
        """Does nothing."""

    def thread(self) -> int:
        """The greenlets' thread."""
        return self._thread

    def interrupt_in(self, fiber: Any, interrupt: interrupts.CtrlC) -> None:
        """Does nothing: it has been raised there already, where Python handles signals."""

    def sleep(self, seconds: float, really: Callable[[float], None]) -> None:
        """Sleeps: the system's sleep ends by signals."""
        really(seconds)

    def on_main_thread(self, function: Callable[[], object]) -> bool:
        """Calls it where the greenlets are on that thread."""
        if not _is_main_thread():
            return False
        function()
        return True


class Threads:
    """Fibers as threads of the system.

    Args:
        enter: is called by each that goes on, on its thread, before anything else, with the thread's number.
        leave: is called by each that ends, on its thread, after everything else.
        stack: bytes of each thread's stack.
    """

    def __init__(
        self,
        enter: Callable[[int], None] = lambda ident: None,
        leave: Callable[[], None] = lambda: None,
        stack: int = 16 << 20,
    ) -> None:
        self.enter, self.leave, self.stack = enter, leave, stack
        self.running: dict[int, ThreadFiber] = {}  # by the number of the thread
        self.active = 0  # the number of the thread whose turn it is; 0 is of one that is being started

    def new(self, body: Callable[..., None], parent: Any) -> Fiber:
        """A thread, which is started by the first switch to it."""
        return ThreadFiber(self, body, parent)

    def current(self) -> Fiber:
        """Returns the fiber of the running thread."""
        ident = _thread.get_ident()
        found = self.running.get(ident)
        if found is None:
            found = self.running[ident] = ThreadFiber(self, None, None)
            found.adopt(ident)
        return found

    def runs(self, fiber: Any) -> bool:
        """Compares it with the thread whose turn it is."""
        return self.active == fiber.ident

    def go_on(self) -> None:
        """Calls what each does that goes on."""
        self.enter(_thread.get_ident())

    def thread(self) -> int:
        """The number of the one whose turn it is."""
        return self.active

    def sleep(self, seconds: float, really: Callable[[float], None]) -> None:
        """Sleeps a little at a time: the main thread alone is woken by signals."""
        end = _monotonic() + seconds
        while seconds > _NAP:
            really(_NAP)
            seconds = max(end - _monotonic(), 0)
        really(seconds)

    def on_main_thread(self, function: Callable[[], object]) -> bool:
        """Calls it there, where the main thread waits for its turn."""
        main = self.running.get(threading.main_thread().ident or 0)
        if _is_main_thread():
            function()
        elif main is not None and isinstance(main.turn, _MainTurn):
            main.turn.run(function)
        else:
            return False
        return True

    def interrupt(self, interrupt: KeyboardInterrupt) -> bool:
        """Raises Ctrl-C, which has come to the main thread, in the thread whose turn it is. Returns false where that is
        the main thread itself."""
        if self.active == _thread.get_ident():
            return False
        _raise_in(self.active, type(interrupt))
        return True

    def interrupt_in(self, fiber: Any, interrupt: interrupts.CtrlC) -> None:
        """Raises it in a thread. It has been noticed when that gets it: a call into C may take for ever."""

        class Noticed(type(interrupt)):  # type: ignore[misc] # threads take a class to raise, and no exception
            def __init__(self) -> None:
                super().__init__()
                interrupt.notice()

        _raise_in(fiber.ident, Noticed)


def _raise_in(thread: int, error: type[BaseException]) -> None:
    """Lets a thread, of this number, raise an exception between two of Python's instructions."""
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), ctypes.py_object(error))


def _forked() -> None:
    """Lets the thread of a rank that forks be the child's main one. Python before 3.11.9 asserts at a child's end that
    it has started the main thread itself."""
    main = threading.main_thread()
    if isinstance(main, threading._DummyThread) and hasattr(main, "_set_tstate_lock"):
        main.__class__ = threading._MainThread  # type: ignore[attr-defined]
        main._set_tstate_lock()


os.register_at_fork(after_in_child=_forked)


def _is_main_thread() -> bool:
    return _thread.get_ident() == threading.main_thread().ident


class _MainTurn:
    """The turn of a thread that was not started here. Ctrl-C, which always comes to the main thread, ends its wait.

    Args:
        interrupt: is called with Ctrl-C, which is for whoever runs; returns false where that is this thread.
    """

    __slots__ = ("_baton", "_errand", "_interrupt", "_taken")

    def __init__(self, interrupt: Callable[[KeyboardInterrupt], bool]) -> None:
        self._interrupt, self._baton = interrupt, Baton()
        self._errand: _Errand | None = None
        self._taken = 0  # of the times that somebody has handed over

    def run(self, function: Callable[[], object]) -> None:
        """Calls a function on the thread that waits for its turn, and raises what that has raised."""
        errand = self._errand = _Errand(function)
        self._baton.hand_over()
        errand.wait()

    def hand_over(self) -> None:
        """Lets the thread go on that waits for it, or will."""
        self._baton.hand_over()

    def hand_over_at_end(self) -> None:
        """Lets the thread go on once the running one has ended."""
        self._baton.hand_over_at_end()

    def wait(self) -> None:
        """Blocks the running thread until somebody hands over.

        Raises:
            KeyboardInterrupt: it came when somebody had just done so.
        """
        own: KeyboardInterrupt | None = None
        while True:
            try:
                if self._baton.look(self._taken) == self._taken:
                    continue
                self._taken += 1
                if self._errand is None:
                    break
                errand, self._errand = self._errand, None
                errand()
            except KeyboardInterrupt as interrupt:
                if not self._interrupt(interrupt):
                    own = interrupt
        if own is not None:
            raise own


class _Errand:
    """A function that another thread is to call."""

    __slots__ = ("_done", "_error", "_function")

    def __init__(self, function: Callable[[], object]) -> None:
        self._function, self._done = function, _thread.allocate_lock()
        self._error: BaseException | None = None
        self._done.acquire()

    def __call__(self) -> None:
        try:
            self._function()
        except BaseException as error:
            self._error = error
        finally:
            self._done.release()

    def wait(self) -> None:
        """Blocks the running thread until it has been called, and raises what it has raised."""
        self._done.acquire()
        if self._error is not None:
            raise self._error


class ThreadFiber:
    """A fiber on a thread of its own; see Fiber.

    Args:
        kind: those that it is one of.
        body: what it runs; None for a thread that has not been started here.
        parent: the fiber that goes on when it has ended.

    Attributes:
        dead: it has ended.
        ident: the number of its thread; 0 before the start.
        turn: what is handed over to it.
    """

    def __init__(self, kind: Threads, body: Callable[..., None] | None, parent: Any) -> None:
        self._kind, self._body, self.parent = kind, body, parent
        self.turn: Baton | _MainTurn = Baton() if body is not None else _MainTurn(kind.interrupt)
        self._thrown: BaseException | None = None
        self._begun = self.dead = False
        self.ident = 0

    def adopt(self, ident: int) -> None:
        """Takes over the running thread."""
        self._begun, self.ident = True, ident

    def __bool__(self) -> bool:
        return self._begun and not self.dead

    def switch(self, *args: Any) -> None:
        """Hands over, and returns when it is the caller's turn again."""
        caller = self._kind.running[_thread.get_ident()]
        if caller is self:
            return
        self._kind.active = self.ident
        if self._begun:
            caller._await(self.turn)
        else:
            self._start(args)
            caller._await(None)

    def throw(self, error: Any) -> None:
        """Raises the exception where it waits; one that has not begun never will."""
        if not self._begun:
            self.dead = True
            return
        self._thrown = error
        self.switch()

    def _start(self, args: tuple[Any, ...]) -> None:
        go.ExpectThreads(len(self._kind.running) + 1)
        before = threading.stack_size(self._kind.stack)
        self._begun = True
        try:
            _thread.start_new_thread(self._run, args)
        except RuntimeError as error:
            self._begun, self.dead = False, True
            self._kind.active = _thread.get_ident()
            raise NoThreadsError(
                f"{error}: {len(self._kind.running)} ranks have one already, and each needs one; ulimit -u and a "
                "container's limit of processes say how many there may be"
            ) from None
        finally:
            threading.stack_size(before)

    def _await(self, following: Baton | _MainTurn | None) -> None:
        """Hands a turn over, unless that is None, and blocks the thread until it is its own turn."""
        own, kind = self.turn, self._kind
        if type(following) is Baton and type(own) is Baton:
            own.wait_after(following)
        else:
            if following is not None:
                following.hand_over()
            own.wait()
        kind.enter(self.ident)
        error = self._thrown
        if error is not None:
            self._thrown = None
            raise error

    def _run(self, *args: Any) -> None:
        self.ident = _thread.get_ident()
        self._kind.running[self.ident] = self
        self._kind.active = self.ident
        self._kind.enter(self.ident)
        try:
            assert self._body is not None
            self._body(*args)
        finally:
            self.dead = True
            del self._kind.running[self.ident]
            try:
                self._kind.leave()
            finally:
                self._kind.active = self.parent.ident
                self.parent.turn.hand_over_at_end()
