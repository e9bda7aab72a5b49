"""The numbers of ranks, as processes, and the signals that they send each other.

A signal to a rank ends the rank, or comes to the handler that the rank has set, and never to the process that all ranks
are in. A rank that waits handles it when it goes on.
"""

from __future__ import annotations

import contextlib
import functools
import os
import signal
import sys
import threading
import types
from collections.abc import Callable
from typing import Any

from torchemu import runtime
from torchemu.launch import alarms
from torchemu.launch.modules import is_program_file
from torchemu.launch.patches import current, replace
from torchemu.launch.process import Process
from torchemu.runtime.tasks import Signalled

_OF_OTHER_TIMERS = (signal.SIGVTALRM, signal.SIGPROF)  # these the system sends, to the process only
_NO_EFFECT = (signal.SIGCHLD, signal.SIGCONT, signal.SIGURG, signal.SIGWINCH)
_STOPS = (signal.SIGSTOP, signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU)
_FIRM = (signal.SIGKILL, signal.SIGSTOP)


def install(stack: contextlib.ExitStack) -> None:
    """Makes ranks look like processes that can be told apart and killed, until the stack is closed."""
    psutil = _Psutil()
    stack.callback(psutil.leave)
    replace(stack, os, "getpid", _number(os.getpid, lambda context: context.pid, psutil))
    replace(stack, os, "getppid", _number(os.getppid, _number_of_parent, psutil))
    replace(stack, os, "kill", _kill(os.kill))
    replace(stack, os, "killpg", _killpg(os.killpg))
    replace(stack, os, "abort", _to_itself(os.abort, signal.SIGABRT))
    replace(stack, signal, "raise_signal", _to_itself(signal.raise_signal))
    handlers = _Handlers()
    handlers.install(stack)
    alarms.Alarms(handlers.of).install(stack)


def _number(real: Callable[[], int], own: Callable[[runtime.Context], int], psutil: _Psutil) -> Callable[[], int]:
    """Programs see numbers of ranks; libraries that are everybody's see that of the process."""

    @functools.wraps(real)
    def call() -> int:
        if current() is None or not is_program_file(sys._getframe(1).f_code.co_filename):
            return real()
        psutil.meet()
        return own(runtime.current())

    return call


class _Psutil:
    """psutil, where a program uses it: a rank's number stands for the process there, for no other has it."""

    def __init__(self) -> None:
        self._undo: Callable[[], None] | None = None

    def meet(self) -> None:
        """Teaches it, once it is loaded."""
        kind = getattr(sys.modules.get("psutil"), "Process", None)
        if kind is None or self._undo is not None:
            return
        real = kind.__init__

        @functools.wraps(real)
        def init(self: Any, pid: int | None = None) -> None:
            real(self, None if pid is not None and pid >= runtime.FIRST_PID else pid)

        kind.__init__ = init
        self._undo = functools.partial(setattr, kind, "__init__", real)

    def leave(self) -> None:
        """Makes it as it was."""
        if self._undo is not None:
            self._undo()


def _number_of_parent(context: runtime.Context) -> int:
    assert context.parent is not None  # ranks have one: the program that spawned them
    return context.parent.pid


def _kill(real: Callable[[int, int], None]) -> Callable[[int, int], None]:
    @functools.wraps(real)
    def kill(pid: int, sig: int, /) -> None:
        if current() is not None and pid in (0, -1, -os.getpgrp()):
            _deliver_to_all(sig)
            return
        target = _found(pid) if current() is not None else None
        if target is None or target.process is None:
            real(pid, sig)
            if pid == os.getpid() and current() is not None:  # then the main thread has heard it when this returns
                runtime.current().world.fibers.on_main_thread(lambda: None)
        elif sig:
            _deliver(target, sig)

    return kill


def _killpg(real: Callable[[int, int], None]) -> Callable[[int, int], None]:
    @functools.wraps(real)
    def killpg(pgid: int, signal: int, /) -> None:
        if current() is not None and pgid in (0, os.getpgrp()):
            _deliver_to_all(signal)
        else:
            real(pgid, signal)

    return killpg


def _deliver_to_all(number: int) -> None:
    """To a rank's process group: itself, last, and the ranks that were spawned with it."""
    own = runtime.current()
    assert own.tasks is not None
    for context in (*(c for c in own.tasks.contexts if c is not own), own):
        if number:
            _deliver(context, number)


def _to_itself(real: Callable[..., None], *fixed: int) -> Callable[..., None]:
    @functools.wraps(real)
    def call(*number: int) -> None:
        if current() is None:
            real(*number)
        else:
            _deliver(runtime.current(), *(fixed or number))

    return call


def _found(pid: int) -> runtime.Context | None:
    """A rank that the running one can know of: itself, one spawned beside it, or by it, or the one that spawned it. The
    number of one that has ended stays its own until the one that spawned it has joined it."""
    context = runtime.current()
    spawned = (children.context_of(pid) for children in (*context.children, *context.unjoined))
    assert context.tasks is not None
    known = (*context.tasks.contexts, context.parent, *spawned)
    return next((found for found in known if found is not None and found.pid == pid), None)


def _deliver(target: runtime.Context, number: int) -> None:
    """Does to a process as the system does on a signal."""
    process = target.process
    assert isinstance(process, Process)
    if not _lives(target):
        return
    handler = process.handlers.get(number, signal.SIG_DFL) if number not in _FIRM else signal.SIG_DFL
    if handler is signal.SIG_IGN or (handler is signal.SIG_DFL and number in _NO_EFFECT):
        return
    if callable(handler):
        process.signals_due.append(int(number))
        if target is runtime.current() and target.task == target.rank:  # a thread of it leaves them to its main program
            process.handle_signals()
        return
    if number in _STOPS:
        raise NotImplementedError(f"{signal.Signals(number).name}: a rank cannot be stopped, only ended")
    _end(target, KeyboardInterrupt() if number == signal.SIGINT else Signalled(number))


def _end(target: runtime.Context, error: BaseException) -> None:
    """Raises in the rank what ends it."""
    running = runtime.current()
    assert target.tasks is not None
    if target is running and not (isinstance(error, KeyboardInterrupt) and target.task != target.rank):
        target.tasks.leave(target.rank, error)
    if target.tasks is running.tasks:
        target.tasks.doom(target.rank, error)
    elif target.parent is running:
        target.tasks.kill(target.rank, error)
    else:
        raise NotImplementedError("a rank cannot end the one that has spawned it")


def _in_main_thread() -> bool:
    """Says whether this is the thread in which the system lets handlers be set: ranks may have others."""
    return threading.current_thread() is threading.main_thread()


class _Handlers:
    """signal.signal and getsignal: handlers are a rank's own. A signal to the process, but for Ctrl-C, which ends the
    run, comes to all ranks that have a handler for it."""

    def __init__(self) -> None:
        self._real_set, self._real_get = signal.signal, signal.getsignal
        self._outside: dict[int, Any] = {}
        self._with_handler: dict[int, dict[Process, runtime.Context]] = {}

    def install(self, stack: contextlib.ExitStack) -> None:
        stack.callback(self._restore)
        replace(stack, signal, "signal", self._set)
        replace(stack, signal, "getsignal", self._get)

    def _restore(self) -> None:
        for number, handler in self._outside.items():
            self._real_set(number, handler)

    def _set(self, signalnum: int, handler: Any, /) -> Any:
        process = current()
        if process is None or (signalnum in _OF_OTHER_TIMERS and _in_main_thread()):
            return self._real_set(signalnum, handler)
        if runtime.current().task != runtime.current().rank:
            raise ValueError("signal only works in main thread of the main interpreter")
        before = self._get(signalnum)
        if signalnum in _FIRM:
            raise OSError(22, "Invalid argument")
        if not callable(handler) and handler not in (signal.SIG_IGN, signal.SIG_DFL):
            raise TypeError("signal handler must be signal.SIG_IGN, signal.SIG_DFL, or a callable object")
        process.handlers[int(signalnum)] = handler
        self._listen(process, signalnum)
        return before

    def _get(self, signalnum: int, /) -> Any:
        """Returns the handler; one that a rank has not set is as in a process that has just started."""
        process, outside = current(), self._real_get(signalnum)
        if process is None:
            return outside
        outside = signal.default_int_handler if signalnum == signal.SIGINT else self._outside.get(signalnum, outside)
        return process.handlers.get(signalnum, outside)

    def of(self, process: Process) -> Any:
        """Returns a rank's handler of SIGALRM."""
        return process.handlers.get(signal.SIGALRM, signal.SIG_DFL)

    def _listen(self, process: Process, number: int) -> None:
        if number in (signal.SIGINT, signal.SIGALRM):
            return
        context = runtime.current()
        if number not in self._outside and not context.world.fibers.on_main_thread(lambda: self._take_over(number)):
            return
        self._with_handler.setdefault(number, {})[process] = context

    def _take_over(self, number: int) -> None:
        self._outside[number] = self._real_set(number, self._forward)

    def _forward(self, number: int, frame: types.FrameType | None) -> None:
        """Gives a signal to the ranks that handle it. A rank on another thread does so when it waits."""
        there = {p: p.handlers[number] for p, context in self._with_handler.get(number, {}).items() if _lives(context)}
        for process, handler in there.items():
            if callable(handler):
                process.signals_due.append(int(number))
        if all(handler is signal.SIG_DFL for handler in there.values()):
            self._real_set(number, self._outside.pop(number))
            os.kill(os.getpid(), number)
        running = current()
        if running is not None:
            running.interrupt(frame)


def _lives(context: runtime.Context) -> bool:
    return context.tasks is not None and context.tasks.exit_codes[context.rank] is None
