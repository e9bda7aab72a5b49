"""Locks and what else ranks wait at for each other. Whoever has waited longest goes on first."""

from __future__ import annotations

import threading
from collections.abc import Callable
from threading import BrokenBarrierError
from typing import Any

from torchemu import runtime
from torchemu.multiprocessing._shared import Shared, access, is_beside, limit, looks_beside
from torchemu.runtime.waiting import Line, host_time

_taking = threading.Lock()  # of the process: a rank and a thread beside the schedule may take a permit at once


class Semaphore(Shared):
    """Permits, of which there are some at first. ``acquire`` takes one, and waits for it; ``release`` gives one back.

    Args:
        value: the number of permits.
    """

    def __init__(self, value: int = 1) -> None:
        super().__init__()
        if value < 0:
            raise ValueError(f"semaphore initial value must be >= 0, not {value}")
        self._free = value
        self._line = Line()
        self._beside: list[int] = []  # threads beside the schedule, by their permits
        self._wanted = False  # a rank waits for one of them

    def acquire(self, block: bool = True, timeout: float | None = None) -> bool:
        """Takes a permit; false when there is none, or none in time. The timeout is in simulated seconds."""
        if is_beside():
            return any(self._takes_beside() for _ in looks_beside(timeout if block else 0))
        access(self)
        return self._take(block, limit(timeout))

    def release(self) -> None:
        """Gives a permit back: to the rank that has waited longest, if any."""
        if is_beside():
            self._give_beside()
            return
        access(self)
        self._give()

    def _takes_beside(self) -> bool:
        """Lets a thread beside the schedule take a permit. Ranks that come meanwhile wait, in no simulated time."""
        with _taking:
            if self._free <= 0 or self._wanted:
                return False
            self._free -= 1
            self._beside.append(threading.get_ident())
            return True

    def _give_beside(self) -> None:
        with _taking:
            self._beside.remove(threading.get_ident())
            self._free += 1

    def get_value(self) -> int:
        """The number of permits that are there."""
        access(self)
        return self._free

    def __enter__(self) -> bool:
        return self.acquire()

    def __exit__(self, *_: object) -> None:
        self.release()

    def _take(self, block: bool = True, ps: int | None = None) -> bool:
        for _ in looks_beside():
            with _taking:
                self._wanted = self._free <= 0 and bool(self._beside)
                if self._free > 0:
                    self._free -= 1
                    return True
                if not self._wanted:
                    break
        return block and ps != 0 and self._wait(ps)

    def _wait(self, ps: int | None) -> bool:
        return self._line.wait(f"a permit of the {self._what()}, which has none left,", ps).called

    def _give(self) -> None:
        if not self._line.call_next():
            with _taking:
                self._free += 1


class BoundedSemaphore(Semaphore):
    """A semaphore that never has more permits than at first."""

    def __init__(self, value: int = 1) -> None:
        super().__init__(value)
        self._most = value

    def _give(self) -> None:
        if self._free >= self._most:
            raise ValueError("semaphore or lock released too many times")
        super()._give()


class Lock(BoundedSemaphore):
    """A lock that one rank can have at a time. Any rank may release it."""

    def __init__(self) -> None:
        super().__init__(1)
        self._owner: runtime.Context | None = None
        self._since = ""

    def _is_mine(self) -> bool:
        return self._owner is runtime.current()

    def _take(self, block: bool = True, ps: int | None = None) -> bool:
        taken = super()._take(block, ps)
        if taken:
            self._owner, self._since = runtime.current(), runtime.call_site()
        return taken

    def _wait(self, ps: int | None) -> bool:
        owner = self._owner.rank if self._owner is not None else -1
        what = f"the {self._what()}, which rank {owner} has had since {self._since},"
        return self._line.wait(what, ps, needs=[owner]).called

    def _give_all(self) -> int:
        """Releases it, however often it was acquired, and returns that number."""
        self._give()
        return 1

    def _take_all(self, depth: int) -> None:
        self._take()


class RLock(Lock):
    """A lock that the rank which has it may acquire again; it is free after as many releases."""

    def __init__(self) -> None:
        super().__init__()
        self._depth = 0

    def _takes_beside(self) -> bool:
        if threading.get_ident() not in self._beside:
            return super()._takes_beside()
        self._beside.append(threading.get_ident())
        return True

    def _give_beside(self) -> None:
        if self._beside.count(threading.get_ident()) > 1:
            self._beside.remove(threading.get_ident())
        else:
            super()._give_beside()

    def _take(self, block: bool = True, ps: int | None = None) -> bool:
        if not self._is_mine() and not super()._take(block, ps):
            return False
        self._depth += 1
        return True

    def _give(self) -> None:
        if not self._is_mine():
            raise AssertionError("attempt to release recursive lock not owned by thread")
        self._depth -= 1
        if self._depth == 0:
            self._owner = None
            super()._give()

    def _give_all(self) -> int:
        depth, self._depth = self._depth, 1
        self._give()
        return depth

    def _take_all(self, depth: int) -> None:
        self._take()
        self._depth = depth


class Condition(Shared):
    """A condition, for which ranks that have a lock wait until another one, which then has it, says that something has
    changed.

    Args:
        lock: a Lock or RLock; None makes an RLock.
    """

    def __init__(self, lock: Lock | None = None) -> None:
        super().__init__()
        self._lock = lock if lock is not None else RLock()
        self._line = Line()
        if not isinstance(self._lock, Lock):
            raise TypeError(f"a Condition needs a Lock or RLock of torch.multiprocessing, not {lock!r}")

    def acquire(self, block: bool = True, timeout: float | None = None) -> bool:
        """Acquires the lock."""
        return self._lock.acquire(block, timeout)

    def release(self) -> None:
        """Releases the lock."""
        self._lock.release()

    def __enter__(self) -> bool:
        return self.acquire()

    def __exit__(self, *_: object) -> None:
        self.release()

    def wait(self, timeout: float | None = None) -> bool:
        """Releases the lock until it is notified, and acquires it again; false when that did not come in time."""
        if not self._lock._is_mine():
            raise AssertionError("must acquire() condition before using wait()")
        depth = self._lock._give_all()
        notified = self._line.wait(f"a notification of the {self._what()}", limit(timeout)).called
        self._lock._take_all(depth)
        return notified

    def wait_for(self, predicate: Callable[[], Any], timeout: float | None = None) -> Any:
        """Waits until the predicate is true, and returns what it said last."""
        left = limit(timeout)
        deadline = None if left is None else host_time() + left
        while not (answer := predicate()):
            remaining = None if deadline is None else (deadline - host_time()) / 1e12
            if remaining is not None and remaining <= 0:
                return answer
            self.wait(remaining)
        return answer

    def notify(self, n: int = 1) -> None:
        """Lets up to n ranks go on that wait, those first that came first."""
        if not self._lock._is_mine():
            raise AssertionError("lock is not owned")
        for _ in range(n):
            self._line.call_next()

    def notify_all(self) -> None:
        """Lets all ranks go on that wait."""
        self.notify(len(self._line))


class Event(Shared):
    """An event, for which ranks wait until another one sets it."""

    def __init__(self) -> None:
        super().__init__()
        self._set = False
        self._line = Line()

    def is_set(self) -> bool:
        """Reports whether it is set."""
        if not is_beside():
            access(self)
        return self._set

    def set(self) -> None:
        """Sets it, and lets all go on that wait."""
        access(self)
        self._set = True
        self._line.call_all()

    def clear(self) -> None:
        """Makes it as it was before it was set."""
        access(self)
        self._set = False

    def wait(self, timeout: float | None = None) -> bool:
        """Waits until it is set; false when it was not in time."""
        if is_beside():
            return any(self._set for _ in looks_beside(timeout))
        access(self)
        return self._set or self._line.wait(f"the {self._what()}, which nobody has set,", limit(timeout)).called


class Barrier(Shared):
    """A barrier, which no rank passes before as many have come as there are parties.

    Args:
        parties: how many.
        action: what the last one calls before all go on.
        timeout: of every wait that has none of its own, in simulated seconds.
    """

    def __init__(self, parties: int, action: Callable[[], object] | None = None, timeout: float | None = None) -> None:
        super().__init__()
        if parties < 1:
            raise ValueError(f"parties must be > 0, not {parties}")
        self.parties, self._action, self._timeout = parties, action, timeout
        self._line = Line()
        self._broken = False

    @property
    def n_waiting(self) -> int:
        """Returns how many ranks wait."""
        access(self)
        return len(self._line)

    @property
    def broken(self) -> bool:
        """Reports whether it is broken: by abort, a timeout or a failing action."""
        access(self)
        return self._broken

    def wait(self, timeout: float | None = None) -> int:
        """Waits for the others, and returns how many had come before.

        Raises:
            BrokenBarrierError: it is broken, or was reset while this rank waited.
        """
        access(self)
        if self._broken:
            raise BrokenBarrierError
        before = len(self._line)
        if before == self.parties - 1:
            self._pass()
            return before
        what = f"the {self._what()}, where {before + 1} of {self.parties} ranks are,"
        place = self._line.wait(what, limit(self._timeout if timeout is None else timeout))
        if not place.called:
            self._break()
        if not place.given:
            raise BrokenBarrierError
        return before

    def _pass(self) -> None:
        passing, self._line = self._line, Line()  # who comes while the action runs is of the next round
        try:
            if self._action is not None:
                self._action()
        except BaseException:
            passing.call_all(given=False)
            self._break()
            raise
        passing.call_all(given=True)

    def _break(self) -> None:
        self._broken = True
        self._line.call_all(given=False)

    def abort(self) -> None:
        """Breaks it: who waits, or comes, gets a BrokenBarrierError."""
        access(self)
        self._break()

    def reset(self) -> None:
        """Makes it as new; who waits gets a BrokenBarrierError."""
        access(self)
        self._broken = False
        self._line.call_all(given=False)
