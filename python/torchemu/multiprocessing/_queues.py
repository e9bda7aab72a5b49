"""Queues and pipes between ranks. What is put in comes out as a copy; tensors keep their memory, as with PyTorch."""

from __future__ import annotations

import contextlib
import errno
import threading
from collections import deque
from queue import Empty, Full
from typing import Any

from torchemu import runtime
from torchemu.errors import DeadlockError
from torchemu.multiprocessing._helper import Closing
from torchemu.multiprocessing._holders import Holders
from torchemu.multiprocessing._shared import Copied, Shared, access, access_to_put, is_beside, limit, looks_beside
from torchemu.runtime.frames import is_installed
from torchemu.runtime.waiting import Line

_STARTING = 1.0
"""Seconds that a thread which a package has started may take to come."""


class SimpleQueue(Shared):
    """A queue without a bound."""

    def __init__(self) -> None:
        super().__init__()
        self._items: deque[Copied] = deque()
        self._takers = Line()
        self._closed = Closing()
        self._beside: threading.Thread | None = None  # that takes from it, and is none of a rank's

    def put(self, obj: Any) -> None:
        """Appends a copy of an object."""
        self._check_open()
        packed = Copied(obj)
        access_to_put(self)
        self._add(packed)

    def get(self) -> Any:
        """Takes the first object; waits for one."""
        if is_beside():
            return self._awaited().unpacked()
        self._check_open()
        access(self)
        return self._first(None).unpacked()

    def empty(self) -> bool:
        """Reports whether there is nothing in it."""
        self._check_open()
        access(self)
        return not self._items

    def close(self) -> None:
        """Means that this rank will not use it any more."""
        self._closed.set()

    def _check_open(self) -> None:
        if self._closed.get():
            raise ValueError(f"Queue {self!r} is closed")

    def _add(self, packed: Copied) -> None:
        if not self._takers.call_next(packed):
            self._items.append(packed)

    def _awaited(self, seconds: float | None = None) -> Copied:
        """Waits as threads do that are none of a rank's: those by which loggers write, say.

        Raises:
            queue.Empty: there is nothing in time, which is the wall clock's.
        """
        self._beside = threading.current_thread()
        for _ in looks_beside(seconds):
            with contextlib.suppress(IndexError):
                return self._items.popleft()
        raise Empty

    def _first(self, ps: int | None) -> Copied:
        if self._items:
            return self._items.popleft()
        place = self._takers.wait(f"something to get from the {self._what()}", ps) if ps != 0 else None
        if place is None or not place.called:
            raise Empty
        return place.given


class Queue(SimpleQueue):
    """A queue that may have a bound.

    Args:
        maxsize: how many objects fit in; 0 is any number.
    """

    def __init__(self, maxsize: int = 0) -> None:
        super().__init__()
        self._most = maxsize
        self._putters = Line()

    def put(self, obj: Any, block: bool = True, timeout: float | None = None) -> None:
        """Appends a copy of an object; waits while the queue is full.

        Raises:
            queue.Full: block is false, or simulated time has passed the timeout, and it is full.
        """
        self._check_open()
        packed = Copied(obj)
        access_to_put(self)
        if self._has_room() or (block and self._gets_room()):
            self._add(packed)
        else:
            self._offer(packed, limit(timeout) if block else 0)

    def get(self, block: bool = True, timeout: float | None = None) -> Any:
        """Takes the first object; waits for one.

        Raises:
            queue.Empty: block is false, or simulated time has passed the timeout, and there is none.
        """
        if is_beside():
            return self._awaited(timeout if block else 0).unpacked()
        self._check_open()
        access(self)
        packed = self._first(limit(timeout) if block else 0)
        if (putter := self._putters.call_next()) is not None:
            self._add(putter.offer)
        return packed.unpacked()

    def put_nowait(self, obj: Any) -> None:
        """put without waiting."""
        self.put(obj, block=False)

    def get_nowait(self) -> Any:
        """get without waiting."""
        return self.get(block=False)

    def qsize(self) -> int:
        """Returns how many objects are in it."""
        access(self)
        return len(self._items)

    def full(self) -> bool:
        """Reports whether no other object fits in."""
        access(self)
        return not self._has_room()

    def join_thread(self) -> None:
        """Does nothing: there is no thread, and what was put in is there."""

    def cancel_join_thread(self) -> None:
        """Does nothing; see join_thread."""

    def _has_room(self) -> bool:
        return not 0 < self._most <= len(self._items)

    def _gets_room(self) -> bool:
        """Lets a thread beside the schedule take something, while no simulated time passes. Reports whether it has."""
        if self._beside is None and is_installed(self._made.rpartition(":")[0]):
            any(self._beside is not None for _ in looks_beside(_STARTING))
        for _ in looks_beside():
            if self._has_room() or self._beside is None or not self._beside.is_alive():
                break
        return self._has_room()

    def _offer(self, packed: Copied, ps: int | None) -> None:
        """Waits until a rank that gets something makes room, and adds this in the same moment."""
        what = f"room in the {self._what()}, which is full with {self._most},"
        if ps == 0 or not self._putters.wait(what, ps, offer=packed).called:
            raise Full


class JoinableQueue(Queue):
    """A queue for tasks: ``join`` waits until as many were called done as were put in."""

    def __init__(self, maxsize: int = 0) -> None:
        super().__init__(maxsize)
        self._unfinished = 0
        self._joiners = Line()

    def _add(self, packed: Copied) -> None:
        self._unfinished += 1
        super()._add(packed)

    def task_done(self) -> None:
        """Says that what get gave has been dealt with."""
        access(self)
        if self._unfinished == 0:
            raise ValueError("task_done() called too many times")
        self._unfinished -= 1
        if self._unfinished == 0:
            self._joiners.call_all()

    def join(self) -> None:
        """Waits until all that was put in has been dealt with."""
        access(self)
        if self._unfinished:
            self._joiners.wait(f"{self._unfinished} unfinished tasks of the {self._what()}")


class _Way(SimpleQueue):
    """One direction of a pipe.

    Attributes:
        senders, receivers: the processes that hold its ends.
    """

    senders: Holders
    receivers: Holders

    def _what(self) -> str:
        return f"Pipe made at {self._made}"

    def poll(self, ps: int | None) -> bool:
        """Reports whether something is there in time, or nothing can come any more, as of files."""
        access(self)
        try:
            self._items.appendleft(self._first(ps))
        except Empty:
            return False
        except EOFError:
            pass
        return True

    def let_go(self) -> bool:
        """Ends the wait of one that waits in vain, for nobody holds the other end. Reports whether there was one."""
        if self.senders.are_left():
            return False
        return self._takers.call_next() is not None

    def _first(self, ps: int | None) -> Copied:
        if not self._items and not self.senders.are_left():
            raise EOFError
        resorts = runtime.current_world().last_resorts
        resorts.append(self.let_go)
        try:
            packed = super()._first(ps)
        except DeadlockError:  # a program's that waits alone
            if self.senders.are_left():
                raise
            raise EOFError from None
        finally:
            resorts.remove(self.let_go)
        if packed is None:
            raise EOFError
        return packed


class Connection(Shared):
    """One end of a pipe."""

    def __init__(self, incoming: _Way | None, outgoing: _Way | None) -> None:
        super().__init__()
        self._incoming, self._outgoing = incoming, outgoing
        self._closed = Closing()
        self._holders = Holders(self._closed)
        self.readable, self.writable = incoming is not None, outgoing is not None
        if incoming is not None:
            incoming.receivers = self._holders
        if outgoing is not None:
            outgoing.senders = self._holders

    def travels(self) -> None:
        """Any process may come to hold it."""
        self._holders.add_anyone()

    @property
    def closed(self) -> bool:
        """Reports whether this rank has closed it."""
        return self._closed.get()

    def send(self, obj: Any) -> None:
        """Sends a copy of an object to the other end.

        Raises:
            BrokenPipeError: no process holds the other end any more.
        """
        way = self._open(self._outgoing, "read-only")
        if not way.receivers.are_left():
            raise BrokenPipeError(errno.EPIPE, "Broken pipe")
        way.put(obj)

    def recv(self) -> Any:
        """Returns the next object from the other end; waits for it.

        Raises:
            EOFError: there is none, and no process holds the other end any more. Who waits hears of a process's end
                once all others wait, too.
        """
        return self._open(self._incoming, "write-only").get()

    def send_bytes(self, buf: bytes) -> None:
        """Sends bytes."""
        self.send(bytes(buf))

    def recv_bytes(self) -> bytes:
        """The next bytes; waits for them."""
        return self.recv()

    def poll(self, timeout: float | None = 0.0) -> bool:
        """Reports whether there is something to receive, by simulated time's timeout at the latest."""
        return self._open(self._incoming, "write-only").poll(limit(timeout))

    def close(self) -> None:
        """Means that this rank will not use it any more. Who waits at the other end hears of it if nobody else holds
        this one."""
        self._holders.close()
        if self._outgoing is not None:
            self._outgoing.let_go()

    def __enter__(self) -> Connection:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _open(self, way: _Way | None, otherwise: str) -> _Way:
        if self.closed:
            raise OSError("handle is closed")
        if way is None:
            raise OSError(f"connection is {otherwise}")
        return way


def pipe(duplex: bool = True) -> tuple[Connection, Connection]:
    """The two ends of a pipe; without duplex the first receives and the second sends."""
    there, back = _Way(), _Way() if duplex else None
    return Connection(there, back), Connection(back, there)
