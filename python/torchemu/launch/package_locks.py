"""Locks that installed packages make as they are loaded: each rank has its own.

A package is loaded once, and each process of a cluster has its locks. One for all ranks would stop the process where a
rank waits for others while it holds the lock, and another one comes to it. Threads of the system, which packages start,
are kept out all the same.
"""

from __future__ import annotations

import contextlib
import threading
import weakref
from typing import Any

from torchemu.launch.blocking import loads_a_package
from torchemu.launch.patches import current, replace

_lock, _rlock = threading.Lock, threading.RLock


class _EachRanks:
    """A lock of each rank, and one for all, which threads of the system take. A rank takes that, too, but where another
    rank has it, which waits."""

    __slots__ = ("__weakref__", "_common", "_holder", "_locks", "_times")

    def __init__(self) -> None:
        self._common = self._of_system()
        self._locks: weakref.WeakKeyDictionary[Any, Any] = weakref.WeakKeyDictionary()
        self._holder: Any = None  # the rank that has the common one
        self._times = 0  # that it has taken it

    @property  # type: ignore[misc]
    def __class__(self) -> Any:  # for isinstance
        return type(self._of_system())

    def _of_system(self) -> Any:
        return _lock()

    def _of_rank(self) -> Any:
        from torchemu.launch.threads import locks  # which most runs do without

        return locks.Lock()

    def _own(self, process: Any) -> Any:
        if process is None:
            return self._common
        found = self._locks.get(process)
        if found is None:
            found = self._locks[process] = self._of_rank()
        return found

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        """Acquires the running rank's, or the common one on another thread; says whether it did."""
        process = current()
        own = self._own(process)
        if not own.acquire(blocking, timeout):
            return False
        if process is not None and not self._take(process, blocking, timeout):
            own.release()
            return False
        return True

    def _take(self, process: Any, blocking: bool = True, timeout: float = -1) -> bool:
        """Takes the common one for a rank, unless another rank has it; says whether no thread of the system has it."""
        if self._holder not in (None, process):
            return True
        if not self._common.acquire(blocking, timeout):
            return False
        self._holder, self._times = process, self._times + 1
        return True

    def release(self) -> None:
        """Gives it back."""
        process = current()
        self._own(process).release()
        if process is not None and self._holder is process:
            self._leave()

    def _leave(self) -> None:
        self._times -= 1
        if self._times == 0:
            self._holder = None
        self._common.release()

    def locked(self) -> bool:
        """Reports whether a thread of the rank has it."""
        return bool(self._own(current()).locked())

    def __enter__(self) -> bool:
        return self.acquire()

    def __exit__(self, *_: object) -> None:
        self.release()

    def __repr__(self) -> str:
        return repr(self._own(current()))

    def __reduce_ex__(self, protocol: Any) -> Any:
        return self._common.__reduce_ex__(protocol)

    def _at_fork_reinit(self) -> None:
        self.__init__()  # type: ignore[misc] # nobody else is there


class _EachRanksAgain(_EachRanks):
    """Such a lock that the thread which has it may acquire again; conditions ask it for more."""

    __slots__ = ()

    def _of_system(self) -> Any:
        return _rlock()

    def _of_rank(self) -> Any:
        from torchemu.launch.threads import locks

        return locks.RLock()

    def _is_owned(self) -> bool:
        return bool(self._own(current())._is_owned())

    def _release_save(self) -> tuple[Any, int]:
        process = current()
        before = self._own(process)._release_save()
        times = self._times if process is not None and self._holder is process else 0
        for _ in range(times):
            self._leave()
        return before, times

    def _acquire_restore(self, before: tuple[Any, int]) -> None:
        process, (own, times) = current(), before
        self._own(process)._acquire_restore(own)
        for _ in range(times):
            self._take(process)


class _Kind(type):
    """The type of what stands for threading.Lock: of it are all such locks, whoever has made them."""

    def __instancecheck__(cls, one: object) -> bool:
        return isinstance(one, type(_lock()))


class _Lock(metaclass=_Kind):
    """threading.Lock, which makes a lock; from Python 3.13 on it is a type."""

    def __new__(cls) -> Any:
        return _EachRanks() if _is_asked() else _lock()


def _reentrant() -> Any:
    """threading.RLock."""
    return _EachRanksAgain() if _is_asked() else _rlock()


def _is_asked() -> bool:
    return current() is not None and loads_a_package()


def install(stack: contextlib.ExitStack) -> None:
    """Gives each rank its own of the locks that packages make from now on as they are loaded, until the stack is
    closed."""
    replace(stack, threading, "Lock", _Lock)
    replace(stack, threading, "RLock", _reentrant)
