"""Locks of threads of one rank. Whoever has waited longest gets them next: also who just gave one back has to wait."""

from __future__ import annotations

import _thread
from typing import Any, NoReturn

from torchemu import runtime
from torchemu.launch.threads.waits import called_by_program, described, end_of, is_in_condition
from torchemu.runtime import threads

_AT_ONCE, _FOR_EVER = 0, -1


def is_foreign() -> bool:
    """Reports whether this is a thread of the system, and none of a rank's."""
    process: Any = runtime.process()
    return process is None or process.thread != _thread.get_ident()


def ident() -> int:
    """The running thread's number."""
    return _thread.get_ident() if is_foreign() else runtime.current().ident


def _limit(blocking: bool, timeout: float) -> float | None:
    """Seconds to wait at most; None for ever.

    Raises:
        TypeError, ValueError, OverflowError: as of Python's locks.
    """
    if timeout != _FOR_EVER:
        _thread.allocate_lock().acquire(blocking, timeout)  # a free lock that says what is wrong
        return timeout
    return None if blocking else _AT_ONCE


class Lock:
    """A lock that acts as _thread.lock.

    Args:
        is_sentinel: the thread that has it releases it when it ends, and others wait for that.
    """

    __module__, __qualname__ = "_thread", "lock"  # as programs, and pickle, see it
    __slots__ = ("__weakref__", "_holder", "_is_sentinel", "_locked", "_looks", "_places")

    def __init__(self, *, is_sentinel: bool = False) -> None:
        self._places = threads.Places()
        self._is_sentinel = is_sentinel
        self._locked = False
        self._holder: threads.Thread | None = None
        self._looks: threads.Looks | None = None

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        """Acquires it, and waits for it, for seconds of simulated time at most; says whether it did."""
        limit = _limit(blocking, timeout)
        threads.may_switch()
        if not self._locked:
            self._locked = True
        elif limit == _AT_ONCE:
            return self._in_vain()
        elif not self._waits(limit):
            return False
        self._looks = None
        self._holder = threads.running()
        return True

    def _in_vain(self) -> bool:
        if called_by_program():
            self._looks = self._looks or threads.Looks()
            self._looks.in_vain(described("Lock.acquire(blocking=False)"))
            if not self._locked:
                return self.acquire()
        return False

    def _waits(self, limit: float | None) -> bool:
        """Says whether it was given the lock in time."""
        holder = self._holder
        if is_in_condition():
            return self._places.is_called(described("", limit), limit)
        if holder is None:
            what = described("a Lock, which the main thread has,", limit)
            return self._places.is_called(what, limit, runtime.current().rank)
        if self._is_sentinel:
            return self._places.is_called(end_of(holder.name, limit), limit, holder.task)
        return self._places.is_called(described(f"a Lock, which thread {holder.name} has,", limit), limit, holder.task)

    def release(self) -> None:
        """Gives it back: to the thread that has waited longest, if any.

        Raises:
            RuntimeError: nobody has it.
        """
        if not self._locked:
            raise RuntimeError("release unlocked lock")
        if not self._places.call_next():
            self._locked = False
        threads.may_switch()

    def locked(self) -> bool:
        """Reports whether a thread has it."""
        return self._locked

    def __enter__(self) -> bool:
        return self.acquire()

    def __exit__(self, *_: object) -> None:
        self.release()

    def __repr__(self) -> str:
        state = "locked" if self._locked else "unlocked"
        return f"<{state} _thread.lock object at {id(self):#x}>"

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise TypeError("cannot pickle '_thread.lock' object")

    def _is_owned(self) -> bool:
        """For conditions, which otherwise try to acquire it."""
        return self._locked

    def _at_fork_reinit(self) -> None:
        Lock.__init__(self)

    acquire_lock, release_lock, locked_lock = acquire, release, locked


class RLock:
    """A lock that acts as _thread.RLock: the thread that has it may acquire it again."""

    __module__, __qualname__ = "_thread", "RLock"
    __slots__ = ("__weakref__", "_count", "_lock", "_owner")

    def __init__(self) -> None:
        self._lock = Lock()
        self._owner = self._count = 0

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        """Acts as Lock.acquire."""
        me = ident()
        if self._owner == me:
            self._count += 1
            return True
        if not self._lock.acquire(blocking, timeout):
            return False
        self._owner, self._count = me, 1
        return True

    def release(self) -> None:
        """Takes one acquire back; it is free after as many.

        Raises:
            RuntimeError: another thread has it, or nobody.
        """
        if self._owner != ident():
            raise RuntimeError("cannot release un-acquired lock")
        self._count -= 1
        if self._count == 0:
            self._owner = 0
            self._lock.release()

    def locked(self) -> bool:
        """Reports whether a thread has it."""
        return self._lock.locked()

    def __enter__(self) -> bool:
        return self.acquire()

    def __exit__(self, *_: object) -> None:
        self.release()

    def __repr__(self) -> str:
        state = "locked" if self._count else "unlocked"
        return f"<{state} _thread.RLock object owner={self._owner} count={self._count} at {id(self):#x}>"

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise TypeError("cannot pickle '_thread.RLock' object")

    def _is_owned(self) -> bool:
        return self._owner == ident()

    def _recursion_count(self) -> int:
        return self._count if self._is_owned() else 0

    def _release_save(self) -> tuple[int, int]:
        """Gives it back however often it was acquired."""
        if self._count == 0:
            raise RuntimeError("cannot release un-acquired lock")
        before = self._count, self._owner
        self._count = self._owner = 0
        self._lock.release()
        return before

    def _acquire_restore(self, before: tuple[int, int]) -> None:
        """Acquires it as often again."""
        self._lock.acquire()
        self._count, self._owner = before

    def _at_fork_reinit(self) -> None:
        RLock.__init__(self)
