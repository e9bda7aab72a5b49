"""Flows of control that hand over to each other: greenlets, or threads of the system of which one runs at a time.

Greenlets are faster. Threads are for front ends whose libraries keep state by thread, as PyTorch does: gradient modes,
dispatch modes and the autograd engine are the thread's. Both have greenlet's interface, so far as it is used here.
"""

from __future__ import annotations

import _thread
import ctypes
import threading
from collections.abc import Callable
from typing import Any, Protocol

import greenlet

from torchemu.bridge import interrupts


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


class Greenlets:
    """Fibers as greenlets of one thread."""

    def new(self, body: Callable[..., None], parent: Any) -> Fiber:
        """A greenlet."""
        made: Fiber = greenlet.greenlet(body, parent)
        return made

    def current(self) -> Fiber:
        """The running greenlet."""
        running: Fiber = greenlet.getcurrent()
        return running


class Threads:
    """Fibers as threads of the system.

    Args:
        enter: is called by each that goes on, on its thread, before anything else.
        leave: is called by each that ends, on its thread, after everything else.
        stack: bytes of each thread's stack.
    """

    def __init__(
        self,
        enter: Callable[[], None] = lambda: None,
        leave: Callable[[], None] = lambda: None,
        stack: int = 16 << 20,
    ) -> None:
        self.enter, self.leave, self.stack = enter, leave, stack
        self.running: dict[int, ThreadFiber] = {}  # by the number of the thread
        self.active = 0  # the number of the thread whose turn it is

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

    def begin_turn(self, ident: int) -> None:
        """Notes that the running thread, of this number, goes on."""
        self.active = ident
        self.enter()

    def interrupt(self, interrupt: KeyboardInterrupt) -> None:
        """Raises Ctrl-C, which always comes to the main thread, in the thread whose turn it is."""
        if isinstance(interrupt, interrupts.CtrlC):
            interrupt.notice()
        kind = ctypes.py_object(type(interrupt))
        ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(self.active), kind)


class ThreadFiber:
    """A fiber on a thread of its own; see Fiber.

    Args:
        kind: those that it is one of.
        body: what it runs; None for a thread that has not been started here.
        parent: the fiber that goes on when it has ended.

    Attributes:
        dead: it has ended.
        ident: the number of its thread; 0 before the start.
    """

    def __init__(self, kind: Threads, body: Callable[..., None] | None, parent: Any) -> None:
        self._kind, self._body, self.parent = kind, body, parent
        self._turn = _thread.allocate_lock()
        self._turn.acquire()
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
        if caller is not self:
            self._go_on(args)
            caller._await()

    def throw(self, error: Any) -> None:
        """Raises the exception where it waits; one that has not begun never will."""
        if not self._begun:
            self.dead = True
            return
        self._thrown = error
        self.switch()

    def _go_on(self, args: tuple[Any, ...] = ()) -> None:
        if self._begun:
            self._turn.release()
            return
        self._begun = True
        before = threading.stack_size(self._kind.stack)
        try:
            _thread.start_new_thread(self._run, args)
        finally:
            threading.stack_size(before)

    def _await(self) -> None:
        """Blocks the thread until it is its turn."""
        while True:
            try:
                self._turn.acquire()
                break
            except KeyboardInterrupt as interrupt:  # of the main thread: it is for whoever runs
                self._kind.interrupt(interrupt)
        self._kind.begin_turn(self.ident)
        error, self._thrown = self._thrown, None
        if error is not None:
            raise error

    def _run(self, *args: Any) -> None:
        self.ident = _thread.get_ident()
        self._kind.running[self.ident] = self
        self._kind.begin_turn(self.ident)
        try:
            assert self._body is not None
            self._body(*args)
        finally:
            self.dead = True
            del self._kind.running[self.ident]
            try:
                self._kind.leave()
            finally:
                self.parent._go_on()
