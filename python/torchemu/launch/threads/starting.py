"""Starts and ends of a rank's threads: the functions that ``threading`` takes from ``_thread``, for each version of
Python."""

from __future__ import annotations

import functools
import os
import signal
import sys
import traceback
from collections.abc import Callable, Mapping
from typing import Any

import greenlet

from torchemu import runtime
from torchemu.errors import RankKilledError
from torchemu.launch.threads.locks import Lock
from torchemu.launch.threads.waits import end_of
from torchemu.runtime import threads as _threads
from torchemu.runtime.rank_local import RankLocal
from torchemu.runtime.tasks import Unwound

_ENDS = (Unwound, RankKilledError, greenlet.GreenletExit)


def is_end(error: BaseException | None) -> bool:
    """Reports whether an exception is how torchemu ends a thread, which no program is to hear of."""
    return isinstance(error, _ENDS)


def start_new_thread(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any] | None = None, /
) -> int:
    """Starts a thread that calls a function, and returns its number."""
    if not callable(function):
        raise TypeError("first arg must be callable")
    if not isinstance(args, tuple):
        raise TypeError("2nd arg must be a tuple")
    return _begun(functools.partial(function, *args, **(kwargs or {}))).ident


def _begun(call: functools.partial[Any]) -> _threads.Thread:
    thread = getattr(call.func, "__self__", None)  # of threading, unless the program calls _thread itself
    name = getattr(thread, "_name", None) or getattr(call.func, "__name__", "thread")
    daemon = getattr(thread, "_daemonic", True)
    return _threads.of_rank().begin(repr(name), bool(daemon), lambda: _run(call))


def _run(call: functools.partial[Any]) -> None:
    """Makes the call; what it raises is nobody else's."""
    try:
        call()
    except (SystemExit, *_ENDS):
        pass
    except BaseException as error:
        print(f"Exception ignored in thread started by: {call.func!r}", file=sys.stderr)
        traceback.print_exception(error)


def quiet(make: Callable[[], Callable[[Any], None]]) -> Callable[[], Callable[[Any], None]]:
    """For threading._make_invoke_excepthook: hooks do not hear of what torchemu ends threads by."""

    @functools.wraps(make)
    def make_hook() -> Callable[[Any], None]:
        hook = make()

        def call(thread: Any) -> None:
            if not is_end(sys.exc_info()[1]):
                hook(thread)

        return call

    return make_hook


class Logger:
    """concurrent.futures' logger, which does not hear of it either.

    Args:
        real: the logger.
    """

    def __init__(self, real: Any) -> None:
        self._real = real

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)

    def critical(self, *args: Any, **kwargs: Any) -> None:
        """Says that a worker has failed."""
        if not is_end(sys.exc_info()[1]):
            self._real.critical(*args, **kwargs)


def set_sentinel() -> Lock:
    """A lock that is released when the running thread has ended. Python 3.11 and 3.12 join threads by it."""
    lock = Lock(is_sentinel=True)
    thread = _threads.running()

    def ended() -> None:
        if lock.locked():
            lock.release()

    if thread is not None:
        thread.when_ended.append(ended)
    return lock


class ThreadHandle:
    """A handle that acts as _thread._ThreadHandle, by which Python 3.13 and newer join threads.

    Attributes:
        ident: the thread's number.
    """

    def __init__(self) -> None:
        self.ident: int | None = None
        self.task, self.name = -1, "that runs"  # as of Thread
        self._done = False
        self._places = _threads.Places()

    def is_done(self) -> bool:
        """Reports whether the thread has ended."""
        return self._done

    def _set_done(self) -> None:
        self._done = True
        self._places.call_all()

    def join(self, timeout: float | None = None) -> None:
        """Waits until the thread has ended."""
        limit = None if timeout is None or timeout < 0 else timeout
        if not self._done and self.ident == runtime.current().ident:
            raise RuntimeError("Cannot join current thread")
        if not self._done and limit != 0:
            self._places.is_called(end_of(self.name, limit), limit, self.task)


_unfinished: RankLocal[dict[ThreadHandle, None]] = RankLocal(dict)  # handles of threads that are no daemons


def start_joinable_thread(
    function: Callable[[], Any], handle: ThreadHandle | None = None, daemon: bool = True
) -> ThreadHandle:
    """Starts a thread that calls a function, and returns its handle."""
    handle = ThreadHandle() if handle is None else handle
    unfinished = _unfinished.get()

    def ended() -> None:
        unfinished.pop(handle, None)
        handle._set_done()

    thread = _begun(functools.partial(function))
    handle.ident, handle.task, handle.name = thread.ident, thread.task, thread.name
    thread.when_ended.append(ended)
    if not daemon:
        unfinished[handle] = None
    return handle


def make_thread_handle(ident: int) -> ThreadHandle:
    """Returns the handle of a thread that runs."""
    handle = ThreadHandle()
    handle.ident = ident
    return handle


def shutdown() -> None:
    """Waits until all threads have ended that are no daemons."""
    while unfinished := _unfinished.get():
        next(iter(unfinished)).join()


def main_ident() -> int:
    """The number of the main program's thread."""
    return runtime.current().pid


def count() -> int:
    """Returns how many threads there are besides the main program's."""
    threads = runtime.current().threads
    return 0 if threads is None else len(threads.living)


def interrupt_main(signum: int = signal.SIGINT, /) -> None:
    """Sends the rank a signal."""
    os.kill(runtime.current().pid, signum)
