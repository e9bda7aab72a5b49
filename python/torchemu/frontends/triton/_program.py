"""A program of a grid: a block of threads, and the memory that it reaches."""

from __future__ import annotations

import ctypes
import sys
from bisect import bisect_right
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cache
from types import FrameType
from typing import TYPE_CHECKING, Any

import greenlet
import numpy as np

from torchemu import runtime
from torchemu.bridge.binding import go
from torchemu.frontends.triton import _clock
from torchemu.language._program import Program
from torchemu.runtime.rank_local import RankLocal

if TYPE_CHECKING:
    from torchemu.frontends.triton._launching import GridLaunch
    from torchemu.language._machine import Machine

_OWN = tuple(f"{runtime.PACKAGE}frontends/{name}/" for name in ("triton", "triton_dist"))
_RANK_SHIFT = 44  # bits of an offset in an address


LIBRARIES = ("_nvshmem_triton.py",)
"""Modules of functions that kernels call, at whose own lines a program has nothing to look for."""

_LEAST = 50_000
"""Picoseconds of own work that are not charged one by one."""

PASS, FENCE, MEET, TOUCH, SCATTER, SIGNAL, AWAIT, LOAD, STORE = range(9)
"""Steps, as the core has them."""

_AHEAD = 7 * 1024
"""Numbers of the steps that a program is ahead of the core at most."""

_ALL = nullcontext()
"""This is for what all threads do: the checker need not be told of it."""

_is_own = cache(lambda file: file.startswith(_OWN))


def rank_of(address: int) -> int:
    """Returns whose memory an address is in."""
    return (address >> _RANK_SHIFT) - 1


asked: RankLocal[dict[int, int]] = RankLocal(dict)
"""The bytes of symmetric memory that a program has asked for, by the first address of what it has got."""


def _asked_for(start: int, nbytes: int) -> int:
    """Returns so many bytes, or as many as the rank has asked for where it has the part that begins there on others."""
    own = start + (runtime.current().rank - rank_of(start) << _RANK_SHIFT)
    return asked.get().get(own, nbytes)


class Part:
    """A rank's part of a window, in place.

    Attributes:
        start, end: its addresses.
        limit: the end of what the program has asked for, from which on there may be more.
        rank: whose it is.
        data: its bytes.
    """

    __slots__ = ("_typed", "data", "end", "limit", "rank", "start")

    def __init__(self, start: int, place: int, nbytes: int) -> None:
        self.start, self.end, self.rank = start, start + nbytes, rank_of(start)
        self.limit = start + min(nbytes, _asked_for(start, nbytes))
        self.data = np.ctypeslib.as_array((ctypes.c_uint8 * nbytes).from_address(place))
        self._typed: dict[np.dtype, np.ndarray] = {}

    def typed(self, kind: np.dtype) -> np.ndarray:
        """Returns the elements of a type from the beginning on."""
        found = self._typed.get(kind)
        if found is None:
            whole = len(self.data) // kind.itemsize * kind.itemsize
            found = self._typed[kind] = self.data[:whole].view(kind)
        return found


class Parts:
    """The windows of a machine, as far as they are known.

    Args:
        machine: its handle.
    """

    def __init__(self, machine: int) -> None:
        self._machine = machine
        self._starts: list[int] = []
        self._parts: list[Part] = []

    def at(self, address: int) -> Part | None:
        """Returns the part of a window that an address is in; None where there is none."""
        i = bisect_right(self._starts, address) - 1
        if i >= 0 and address < self._parts[i].end:
            return self._parts[i]
        try:
            start, place, nbytes = go.PrimInProcess(self._machine, address)
        except (ValueError, RuntimeError):
            return None
        if not start <= address < start + nbytes:
            return None
        part = Part(start, place, nbytes)
        i = bisect_right(self._starts, start)
        self._starts.insert(i, start)
        self._parts.insert(i, part)
        return part

    def forget(self, start: int) -> None:
        """Forgets the part that begins at an address, which is freed."""
        i = bisect_right(self._starts, start) - 1
        if i >= 0 and self._starts[i] == start:
            del self._starts[i], self._parts[i]


class Elements:
    """An array that the core reads or fills.

    Attributes:
        data: it.
        nbytes: its size.
        place: where it is in the process; to ask for it takes long.
    """

    __slots__ = ("data", "nbytes", "place")

    def __init__(self, data: np.ndarray) -> None:
        self.data, self.nbytes, self.place = data, data.nbytes, data.__array_interface__["data"][0]


class NoLookError(Exception):
    """A loop's condition does more than to look at words at which it has looked before."""


class Block(Program):
    """One program of a grid.

    Attributes:
        place: where it is in the grid, by axis.
        threads: how many it has.
        account: what it has done since time was last charged.
        mask: the threads that are active; None for all.
        effects: how often it has changed anything outside of it.
        looks: what it has seen, inside of loops: address, bytes.
        loops: in how many loops it is.
        supposed: what is in memory by supposition, while a loop's condition is evaluated again to no effect: bytes by
            address; else None.
        asked: the addresses of which that evaluation makes use.
        site: the line that reports name; None for that of the frame.
        frame: of the kernel's function that runs, or of one that it calls.
    """

    launch: GridLaunch

    def __init__(self, machine: Machine, launch: GridLaunch, handle: int, block: int, blocks: int) -> None:
        greenlet.greenlet.__init__(self, self._body)
        self.machine, self.launch, self.handle = machine, launch, handle
        self.block, self.blocks = block, blocks
        self._agreed: set[str] = set()
        self.place = launch.grid.place(block)
        self.threads = launch.threads
        self.parts = launch.parts
        self.rates = launch.rates
        self.checks = launch.checks
        self.drops = False  # what the next atomic operation finds is not used
        self.data_words: tuple[int, ...] = ()  # those of the load that is called which have no flag beside them
        self.looked: dict[int, Any] = {}  # the last look at each word that no atomic operation has come after
        self.account = _clock.Account()
        self.mask: np.ndarray | None = None
        self.effects = 0
        self.looks: list[tuple[int, bytes]] = []
        self.loops = 0
        self.supposed: dict[int, bytes] | None = None
        self.asked: set[int] = set()
        self.landing = False  # something that it has stored or put afar has to be over at its end
        self._stored = self._fenced = False  # something that it has stored afar may be under way; a fence is after it
        self._sent = self._ordered = False  # the same of what it has put into its own rank's memory
        self.all = np.ones(self.threads, bool)
        self.last: Part | None = None
        self.site = launch.site
        self.frame: FrameType | None = None
        self._lines: dict[int, int] = {}
        self._steps: list[int] = []
        self._kept: list[np.ndarray] = []

    def step(self, kind: int, line: int, a: int = 0, b: int = 0, c: int = 0, d: int = 0, e: int = 0) -> None:
        """Adds to the steps that the core takes, over time, before the program sees or changes anything.

        Args:
            kind: one of PASS and those after it; the core's host.Program.Run has what they take.
            line: the core's number for it.
        """
        if self.supposed is not None:
            raise NoLookError
        if len(self._steps) > _AHEAD:
            self.flush()
        self._steps += (kind, line, a, b, c, d, e)

    def move(self, kind: int, what: str, address: int, elements: Elements) -> None:
        """Adds a step that moves elements between memory and an array, which stays as it is until then."""
        self.step(kind, self.line(), self.machine.name(what), address, elements.nbytes, elements.place, True)
        self._kept.append(elements.data)

    def flush(self) -> None:
        """Lets the core take the steps, and returns when all are over."""
        if self._steps:
            steps, kept = self._steps, self._kept
            self._steps, self._kept = [], []
            if go.PrimRun(self.handle, steps):
                self.park()
            kept.clear()

    def call(self, function: Callable[..., bool], *args: Any) -> None:
        """Calls an operation after the steps, and returns when it is over."""
        if self.supposed is not None:
            raise NoLookError
        self.flush()
        if function(self.handle, self.line(), *args):
            self.park()

    def suppose(self, flat: np.ndarray, kind: np.dtype) -> np.ndarray:
        """Returns what is supposed to be at addresses.

        Raises:
            NoLookError: nothing is, of such a size.
        """
        assert self.supposed is not None
        addresses = flat.tolist()
        pieces = [self.supposed.get(address, b"") for address in addresses]
        if any(len(piece) != kind.itemsize for piece in pieces):
            raise NoLookError
        self.asked.update(addresses)
        return np.frombuffer(b"".join(pieces), kind).copy()

    def park(self) -> None:
        """Lets others go on until it is the program's turn again."""
        self.parent.switch()
        _clock.use(self.account)

    def go_into(self, frame: FrameType | None) -> None:
        """Notes the frame of the kernel's function that runs from now on."""
        self.frame = frame
        if frame is not None:
            self._lines = self.machine.lines_in(frame.f_code)

    def line(self) -> int:
        """Returns the number of the line of the kernel that called into this package."""
        if self.site is not None:
            return self.site
        if self.frame is not None:
            known = self._lines.get(self.frame.f_lasti)
            return known if known is not None else self.machine.line_of(self.frame)
        frame = sys._getframe(2)
        while _is_own(frame.f_code.co_filename) and frame.f_back is not None:
            frame = frame.f_back
        return self.machine.line_of(frame)

    def pay(self) -> None:
        """Lets the time pass that its own work has taken."""
        time = self.account.settle(self.rates, _LEAST)
        if time:
            self.step(PASS, self.line(), time)

    def store_afar(self) -> None:
        """Notes a store to another rank's memory. The end of a kernel is that of its stores, wherever they go."""
        self.landing = self._stored = True
        self._fenced = False

    def put_home(self) -> None:
        """Notes a put into its own rank's memory, which a fence has before what it changes there itself."""
        self._sent, self._ordered = True, False

    def arrive_home(self, tells: bool) -> None:
        """Waits, before it changes a word of its own rank, for what it has put there before a fence."""
        if not self._sent or not self._ordered:
            return
        self._sent = False
        self.call(go.PrimOrder, "own")
        if not tells:
            self.fence()

    def fence(self) -> None:
        """Makes what it has stored and sent to a rank land before what it sends there from now on."""
        self._fenced = self._ordered = True
        self.step(FENCE, self.line())

    def release(self, tells: bool) -> None:
        """Waits until its stores have landed, before it changes a word of its own rank: whoever sees that, and goes on
        to tell others, has them find the stores.

        Args:
            tells: the change does that by itself; otherwise a fence before it does.
        """
        if not self._stored or not (tells or self._fenced):
            return
        self._stored = False
        self.call(go.PrimOrder, "stores")
        if not tells:
            self.fence()

    def finish(self) -> None:
        """Lets its own work come to an end; what it has sent may be under way."""
        time = self.account.settle(self.rates)
        if time:
            self.step(PASS, self.machine.end_line, time)
        self.step(MEET, self.machine.end_line)
        self.flush()
        if self.landing and go.PrimOrder(self.handle, self.machine.end_line, "quiet"):
            self.park()

    def active(self) -> np.ndarray:
        """Returns which threads are active."""
        return self.all if self.mask is None else self.mask

    def hearing(self) -> AbstractContextManager[object]:
        """Returns a context in which the program looks at words: perhaps some of its threads do, and others do not."""
        if not self.checks or self.mask is None or self.supposed is not None or self.mask.all():
            return _ALL
        return self._telling(go.PrimSome)

    def sharing(self, threads: bool) -> AbstractContextManager[object]:
        """Returns a context in which the program's threads, if all take part, have shared out the words of peers that
        it changes."""
        return self._telling(go.PrimShares) if threads and self.checks else _ALL

    def heedless(self, drops: bool) -> AbstractContextManager[object]:
        """Returns a context in which the program, if it drops what atomic operations find, hears nothing by them."""
        return self._telling(go.PrimHeedless) if drops and self.checks else _ALL

    @contextmanager
    def _telling(self, switch: Callable[[int, bool], object]) -> Iterator[None]:
        """Returns a context in which the core takes what the program does for something else."""
        self.flush()
        switch(self.handle, True)
        yield
        self.flush()
        switch(self.handle, False)

    def warps(self) -> np.ndarray:
        """Returns the numbers of the warps that have an active thread."""
        return np.flatnonzero(self.active().reshape(-1, 32).any(1)) if self.threads % 32 == 0 else np.zeros(1, int)

    def one(self) -> bool:
        """Says whether thread 0 is active."""
        return self.mask is None or bool(self.mask[0])

    def part(self, address: int) -> Part | None:
        """Returns the part of a window that an address is in."""
        last = self.last
        if last is not None and last.start <= address < last.end:
            return last
        found = self.parts.at(address)
        if found is not None:
            self.last = found
        return found

    def work(self) -> None:
        """Runs the kernel to its end, and keeps account of its time."""
        _clock.use(self.account)
        with np.errstate(all="ignore"):
            try:
                self.launch.call()
            except Exception:
                self.flush()  # it fails when it would have come here
                raise
            self.frame = None
            self.finish()


def current() -> Block:
    """Returns the program that runs.

    Raises:
        RuntimeError: none does: this is no kernel.
    """
    program = greenlet.getcurrent()
    if isinstance(program, Block):
        return program
    raise RuntimeError("this can be used only inside of a kernel: a launched function with @triton.jit")


def running() -> Any:
    """Returns the program that runs; None outside of kernels."""
    program = greenlet.getcurrent()
    return program if isinstance(program, Block) else None
