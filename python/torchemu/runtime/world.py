"""The World that is open, and the rank on whose behalf Python code is running."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import sys
import threading
import types
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from torchemu.bridge.binding import go
from torchemu.bridge.handles import Handle, Lent
from torchemu.runtime import fibers
from torchemu.runtime.exported_memory import Exported

if TYPE_CHECKING:
    from torchemu.errors import DeadlockError
    from torchemu.runtime.buffer import TensorClass
    from torchemu.runtime.classes import Calls
    from torchemu.runtime.outstanding import Outstanding
    from torchemu.runtime.stream_order import StreamOrder
    from torchemu.runtime.tasks import Tasks
    from torchemu.runtime.threads import Thread, Threads

DEFAULT_TOPOLOGY = "default"
FIRST_PID = 1 << 22
"""The first number that Linux gives to no process."""
PACKAGE = os.path.dirname(os.path.dirname(__file__)) + os.sep
"""Where this package's files are: frames of them are not the program's."""
_BETWEEN = (PACKAGE, contextlib.__file__)
"""The same, and what ends the package's own with blocks."""
_between: tuple[str, ...] = _BETWEEN
"""Folders, and names, of code that programs call and that calls this package."""
_SITES = 1 << 14
"""Places in the program that are known at most. Only one that compiles code as it goes has so many."""


@dataclass(frozen=True)
class Strictness:
    """The strictness by which device programs are run.

    Attributes:
        check: look for accesses that nothing orders.
        reorder: the seed by which what they do is moved where no rule orders it; None moves nothing.
    """

    check: bool = False
    reorder: int | None = None


class World:
    """One simulated cluster: a topology, an engine and network on it, and one rank for each SIP.

    Args:
        topology: a preset's name or the path of a topology.yaml.
        ccl: the path of a ccl.yaml; empty for the built-in one.
        strictness: how strictly device programs are run.

    Attributes:
        lent: the memory that its operations use and that is not the core's.
        failure: how the program that ran in it failed, in a line; empty while it has not.
        waits: what ranks waited for in a deadlock, see DeadlockError.waits.
        fibers: how its ranks are made, which take turns.
        room_for: makes the World large enough for so many ranks; None where its topology has been chosen for its size.

    Raises:
        ValueError: something is wrong in one of the files.
    """

    def __init__(
        self,
        topology: str | os.PathLike[str] = DEFAULT_TOPOLOGY,
        ccl: str | os.PathLike[str] = "",
        strictness: Strictness | None = None,
    ) -> None:
        self.source = os.fspath(topology)
        self.handle: int = go.OpenWorld(self.source, os.fspath(ccl))
        self.lent = Lent(self.handle)
        self.failure = ""
        self.waits: Sequence[dict[str, Any]] = ()
        self.last_resorts: list[Callable[[], bool]] = []  # where no rank can go on: each may let one, and says if so
        self.room_for: Callable[[int], None] | None = None
        self.fibers: fibers.Kind = fibers.Greenlets()
        self.schedule = "fifo"  # how spawned ranks take turns: fifo, random, pct, replay or exhaustive
        self.seed = 0  # of the schedule
        self.numbers: Sequence[int] = ()  # of the schedule, as the core's NewScheduler has them
        self.explores = False  # somebody is to be told what ranks may notice of each other
        self.strictness = strictness or Strictness()
        self.calls: Calls | None = None  # where ranks stand for others: what those call that run
        self.ordered = self.strictness.check  # who looks for what nothing orders is to know what ranks do
        self.unwaited = "error" if self.ordered else "warn"  # or "off": what becomes of uses before a wait()
        self.autotunes = False  # kernels of several configurations run in the fastest one
        self.warnings: dict[str, str] = {}  # what is to be said at the end of a run, by what it is of
        self.watches = self.ordered  # somebody is to be told what operations use
        self.reported: set[tuple[int, str, int]] = set()  # uses before a wait() that were warned of
        if self.ordered:
            go.KeepOrder(self.handle)
        self.programs: DevicePrograms | None = None  # None before the first
        self.exported = Exported(lambda storage: int(storage.nbytes))
        self.pids = itertools.count(FIRST_PID)  # of ranks, as processes; no process of the system has such a one
        self.deferrals: Any = None  # what ranks have put off; None: nothing so far
        self.recordings = 0  # in the making
        self.tensors: TensorClass | None = None  # what its programs have; None: they have not chosen
        self.main = Context(self, rank=0)
        self._sites: dict[tuple[int, int], tuple[int, types.CodeType]] = {}
        self.is_open = True
        self._thread = threading.get_ident()
        self._describe()

    def _describe(self) -> None:
        about = json.loads(go.DescribeWorld(self.handle))
        self.topology: str = about["topology"]
        self.spec: dict[str, Any] = about["spec"]
        self.ccl: dict[str, Any] = about["ccl"]
        self.sips: int = about["sips"]
        self.algorithm: str = about["algorithm"]
        self.world_size: int = about["world_size"]
        self._load_kernels(about["kernels"])

    def resize(self, topology: str) -> None:
        """Gives the World, in which nothing is under way, another topology with as many SIPs or more.

        Raises:
            RuntimeError: something is under way, faults are set, or it is being recorded.
        """
        go.ResizeWorld(self.handle, topology)
        self.programs = None  # those were on the old fabric
        self._describe()

    def _load_kernels(self, places: dict[str, tuple[str, str, str, str]]) -> None:
        """Makes kernels run collectives, as ccl.yaml has it."""
        if not places:
            return
        try:
            if _kernel_loader is None:
                raise RuntimeError("the ccl config names kernels, and nothing that loads kernels has been imported")
            _kernel_loader(self, places)
        except BaseException:
            self.close()
            raise

    def collectives(self, first: int = 0) -> list[dict[str, Any]]:
        """The collectives that have completed, from number ``first`` on; times in ps, bandwidths in bytes/s."""
        return json.loads(go.Collectives(self.handle, first))

    def add_faults(self, faults: str | Iterable[Mapping[str, Any]], ranks: int = 0) -> None:
        """Lets things go wrong at simulated times.

        Args:
            faults: a YAML file, or the entries of one, such as ``{"kill": 2, "at": 3e6}``; times are in nanoseconds.
            ranks: how many there will be; 0 is as many as there may be.

        Raises:
            OSError, ValueError: it cannot be read; what is wrong in it, all at once.
        """
        if isinstance(faults, str):
            go.LoadFaults(self.handle, faults, ranks)
        elif entries := [dict(fault) for fault in faults]:
            go.AddFaults(self.handle, json.dumps({"faults": entries}), ranks)  # JSON is YAML

    @property
    def is_here(self) -> bool:
        """Reports whether the World is open, on this thread and in this process, and this is a host's program."""
        is_host = _context is None or _context.is_host
        return is_host and self.is_open and self._thread == threading.get_ident() and not go.forked

    def adopt(self, ident: int) -> None:
        """Makes the running thread, of this number, the one that uses the World, and runs its rank."""
        self._thread = ident
        go.AdoptWorld(self.handle)
        if _context is not None and _context.process is not None:
            _context.process.thread = ident

    def check(self) -> None:
        """Raises RuntimeError where the World cannot be used."""
        if _context is not None:
            _context.refuse()
        if not self.is_open:
            raise RuntimeError("the World is closed: its tensors and process groups can no longer be used")
        go.HostTime(self.handle, 0)  # in a forked child or on another thread the core says what is wrong

    def site(self) -> int:
        """The number of the place in the program that called into torchemu; see go.AddSite."""
        frame = _frame_of_program()
        code = frame.f_code
        place = id(code), frame.f_lasti  # a hash of the code would look at all of it
        known = self._sites.get(place)
        if known is None:
            if len(self._sites) == _SITES:
                self._sites.clear()
            known = self._sites[place] = go.AddSite(self.handle, call_site()), code  # kept: no other gets its id
        return known[0]

    def site_text(self, number: int) -> str:
        """Returns the place in the program that has a number; see site."""
        return next((_told(code, at) for (_, at), (n, code) in self._sites.items() if n == number), "")

    def place(self) -> tuple[str, int, str]:
        """Returns the file, the line and the function of the program that called into torchemu."""
        frame = _frame_of_program()
        return frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name

    def let_go(self) -> bool:
        """Asks what may still let a rank go on, where none can. Reports whether one can now."""
        return any(call() for call in self.last_resorts)

    def take_turns(self) -> None:
        """Does what ranks have put off and can be done, and lets device programs go on that can."""
        if self.deferrals is not None:
            self.deferrals.compute_due()
        if self.programs is not None:
            self.programs.take_turns()

    def abandon_programs(self, why: str) -> None:
        """Ends device programs, with an error."""
        if self.programs is not None:
            self.programs.abandon(why)

    def close(self) -> None:
        """Frees the World; its tensors and groups can no longer be used. What numpy() gave stays valid."""
        self.main.children.clear()  # those that have not run by now never will
        self.abandon_programs("the World is closed")
        go.CloseWorld(self.handle)
        self.is_open = False
        self.lent.forget()


KernelLoader = Callable[[World, Mapping[str, tuple[str, str, str, str]]], None]
"""Makes kernels run a World's collectives, given the place of the kernel for each collective."""

_kernel_loader: KernelLoader | None = None


def load_kernels_by(loader: KernelLoader) -> None:
    """Registers what loads the kernels that a ccl.yaml names."""
    global _kernel_loader
    _kernel_loader = loader


def call_site() -> str:
    """The place in the program that called into torchemu."""
    return place_of(_frame_of_program())


def place_of(frame: types.FrameType) -> str:
    """The place that a frame is at, as call_site tells it."""
    return f"{frame.f_code.co_filename}:{frame.f_lineno} in {frame.f_code.co_name}"


def _told(code: types.CodeType, at: int) -> str:
    """Returns an instruction's place as call_site does."""
    lines = [line for begin, end, line in code.co_lines() if begin <= at < end]
    return f"{code.co_filename}:{lines[0] if lines else code.co_firstlineno} in {code.co_name}"


def _frame_of_program() -> types.FrameType:
    """The innermost frame that is not this package's. To be called by what other functions of the package call."""
    frame = sys._getframe(2)
    while frame.f_back is not None:
        file = frame.f_code.co_filename
        between = _files.get(file)
        if between is None:
            between = _files[file] = file.startswith(_between)
        if not between:
            break
        frame = frame.f_back
    return frame


_files: dict[str, bool] = {}
"""The files of code by whether it is what programs call and what calls this package."""


def look_past(folders: Iterable[str]) -> None:
    """Makes call sites the places that call code in these folders, and not places in it."""
    global _between
    _between = (*_BETWEEN, *folders)
    _files.clear()


class Process(Protocol):
    """State of the interpreter that a rank has for itself, as if it were a process, where ranks are isolated so far:
    modules, environment, random state, … See torchemu.launch.

    Attributes:
        key: what decides the rank's random numbers.
        signals_due: the numbers of signals that the rank has got and not yet handled.
        thread: the number of the thread that runs it.
        watches: it has asked for the end of a process that it has started, in vain, since it last slept.
    """

    key: str
    signals_due: list[int]
    thread: int
    watches: bool

    def handle_signals(self) -> None:
        """Calls the rank's handlers of the signals that are due."""

    def has_read_clock(self) -> bool:
        """Returns whether the rank has read a clock since this was asked last."""

    def enter(self) -> None:
        """Puts it in place; called at every switch to the rank."""

    def call(self, fn: Callable[..., Any], rank: int, *args: Any) -> None:
        """Runs the program of the rank."""

    def hush(self) -> None:
        """Lets nobody see what is printed from now on: the program has ended, and only its threads are left."""

    def spawned(
        self, call: tuple[Callable[..., Any], *tuple[Any, ...]], births: Sequence[Any]
    ) -> tuple[Callable[..., Any], Sequence[Process]]:
        """Returns the function to call in ranks that this one starts for a call, and their processes, with the state of
        each."""

    def birth(self, method: str) -> Any:
        """Returns the state that a process begins with which this one starts now. Of the ways of starting it, "fork"
        makes it a copy, and "program" lets it run another program than the main one."""


class DevicePrograms(Protocol):
    """The device programs of a World; see torchemu.language."""

    def take_turns(self) -> None:
        """Lets those go on that can without time passing."""

    def abandon(self, why: str) -> None:
        """Ends them, with an error."""


class Children(Protocol):
    """Ranks that one has spawned and not waited for."""

    def context_of(self, pid: int) -> Context | None:
        """Returns the context of the rank whose process has this number; None where there is none."""

    def are_ours(self) -> bool:
        """Reports whether it is the running thread that runs them while it waits."""

    def advance(self, until: int = 0) -> None:
        """Runs them until what is behind the handle has ended, or they have."""


class Context:
    """The state of one rank: in a real cluster, of one process.

    Attributes:
        pid: the number of that process; the system knows that of a program which was not spawned only.
        node: the SIPs of its node, which are its program's devices 0, 1, …; None is all of the World.
        device, first_device: the numbers of the current device, and of that which threads begin with.
        first_stream: the default stream, which threads begin with.
        task: the number in the scheduler of the thread that runs when the rank does; its own is the main program's.
        threads: those that it has besides; None before the first.
        unissued: puts what a front end has put together, and not issued yet, on the current stream; None: nothing is.
        is_host: it is the host's program that runs, and not a device program on its behalf; see language.inside.
        meets: how many processes meet at the store that it has opened last, itself among them; 0 where it is not said.
    """

    is_host = True

    def __init__(
        self,
        world: World,
        rank: int,
        tasks: Tasks | None = None,
        parent: Context | None = None,
        process: Process | None = None,
    ) -> None:
        self.world = world
        self.rank = rank
        self.node: range | None = None
        self.device = self.first_device = rank
        self.pid = os.getpid() if tasks is None else next(world.pids)
        self.tasks = tasks
        self.parent = parent
        self.process = process
        self.children: list[Children] = []
        self.unjoined: tuple[Children, ...] = ()  # those of which all have ended, and not all have been joined
        self.last: tuple[str, int] | None = None  # the last operation between ranks that it has issued, and its site
        self.ahead = 0  # operations between ranks that it has issued since the last mark
        self._mark: Handle | None = None  # the end of what it had issued by then
        self.stream_order: StreamOrder | None = None  # None while the program has one stream
        self.outstanding: Outstanding | None = None  # what it has not waited for; None before the first
        self.own: dict[object, Any] = {}  # by whom it is for; see torchemu.runtime.rank_local
        self.of_thread: dict[object, Any] = {}  # as own, but the running thread's
        self.task = rank
        self.threads: Threads | None = None
        self.deadlock: DeadlockError | None = None  # that its main program has been told
        self.inherited: Any = parent.of_ranks() if parent is not None else None
        self.group: Any = None
        self.streams = 0  # others than the default one
        self.meets = 0
        self.unissued: Callable[[], None] | None = None
        self._stream: int = go.DefaultStream(world.handle, rank)
        self._host_stream = 0
        self.first_stream = self._stream

    @property
    def thread(self) -> Thread | None:
        """The rank's running thread; None for its main program's."""
        return None if self.threads is None else self.threads.running

    @property
    def ident(self) -> int:
        """The number of the running thread. That of the main program's is the number of its process, as on Linux."""
        return self.pid if self.thread is None else self.thread.ident

    @property
    def stream(self) -> int:
        """The current stream of the rank's running thread. All that has been issued is on it."""
        if self.unissued is not None:
            self.unissued()
        return self._stream

    @stream.setter
    def stream(self, stream: int) -> None:
        if self.unissued is not None:
            self.unissued()
        self._stream = stream

    @property
    def host_stream(self) -> int:
        """The order of operations on the host's memory, which follow nothing that the rank's device has to do."""
        self.issue()
        self._host_stream = self._host_stream or go.HostStream(self.world.handle, self.rank)
        return self._host_stream

    def issue(self) -> None:
        """Puts on the rank's current stream what a front end has put together for it."""
        if self.unissued is not None:
            self.unissued()

    def refuse(self) -> None:
        """Raises RuntimeError where a device program runs instead of the host's."""

    @property
    def own_device(self) -> int:
        """The number, on its node, of the SIP that the rank is on, whichever is current."""
        return self.rank if self.node is None else self.rank - self.node.start

    def settle_on(self, node: range) -> None:
        """Puts the rank on a node, of these SIPs."""
        self.node = node
        self.device = self.first_device = self.rank - node.start

    def of_ranks(self) -> Any:
        """The default group, where spawned ranks can have it too: a single worker's shards are not ranks to spawn,
        and a group that is not on the fabric belongs to who made it."""
        group = self.group or self.inherited
        return None if group is None or group.sharded or not group.handle else group

    def wait(self, waitable: int) -> bool:
        """Blocks this rank until the work, or what is pending on the tensor, behind the handle has ended.

        Returns:
            Whether it is known that nothing is under way any more on the tensor's memory.
        """
        if self.unissued is not None:
            self.unissued()
        for children in tuple(self.children):
            if children.are_ours():
                children.advance(waitable)
        if self.tasks is not None:
            return self.tasks.wait(self.task, waitable)
        while not go.Await(self.world.handle, self.rank, waitable):
            self.world.take_turns()  # a moment in Python, in which Ctrl-C is noticed
        return False

    def is_signalled(self) -> bool:
        """Reports whether it is the main program that runs, and has signals to handle."""
        return self.process is not None and bool(self.process.signals_due) and self.task == self.rank

    def synchronize(self) -> None:
        """Blocks the host until all operations have ended that this rank has issued, on whichever stream."""
        if self.outstanding is not None:
            self.outstanding.end_devices()
        if self.stream_order is not None:
            self.stream_order.wait_on_host()
        while event := go.Outstanding(self.world.handle, self.rank):
            self.wait(Handle(event).number)

    def stay_near(self) -> None:
        """Waits until what was issued before the last mark has ended, and sets another one: the queue of a device has
        an end, and what has been issued takes memory."""
        self.ahead, mark = 0, self._mark
        event = go.Outstanding(self.world.handle, self.rank)
        self._mark = Handle(event) if event else None
        if mark is not None and not go.IsDone(mark.number):
            self.wait(mark.number)

    def wait_within(self, waitable: int) -> None:
        """Acts as wait, for what other threads of the rank bring about.

        Raises:
            DeadlockError: the main program has been told that this does not come, and waits again: to end, mostly.
        """
        if self.deadlock is not None and self.task == self.rank and not go.IsDone(waitable):
            raise self.deadlock
        self.wait(waitable)

    def wait_for_launch(self, number: int) -> None:
        """Blocks the running rank until a launch of this one, a kernel or the like, has ended."""
        end = go.LaunchEnd(self.world.handle, self.rank, number)
        if end:
            try:
                current().wait(end)
            finally:
                go.Release(end)

    def wait_for_all(self) -> None:
        """Blocks a program outside of any spawn until all that it has issued has ended."""
        self.issue()
        while not go.AwaitAll(self.world.handle, self.rank):
            self.world.take_turns()


_world: World | None = None
_context: Context | None = None


def current() -> Context:
    """The context of the running rank; opens the default World when none is open."""
    return _context if _context is not None else current_world().main


def current_world() -> World:
    """The open World; the default one when none is."""
    global _world
    if _world is None:
        _world = World()
    return _world


def switch_to(context: Context | None) -> Context | None:
    """Makes context that of the running code, and returns the one before."""
    global _context
    before, _context = _context, context
    if context is not None and context.process is not None:
        context.process.enter()
    return before


def running() -> Context | None:
    """The context of the running rank; None outside of any."""
    return _context


def present() -> Context | None:
    """The context of the running rank; None where no World is open."""
    return _context if _context is not None or _world is None else _world.main


def process() -> Process | None:
    """Returns the running rank's state of the interpreter; None where ranks are not isolated."""
    return _context.process if _context is not None else None


@contextlib.contextmanager
def opened(
    topology: str | os.PathLike[str] = DEFAULT_TOPOLOGY,
    ccl: str | os.PathLike[str] = "",
    strictness: Strictness | None = None,
) -> Iterator[World]:
    """A World of its own for the duration of a with block; the one before is current again after it."""
    global _world
    before, _world = _world, World(topology, ccl, strictness)
    context = switch_to(None)
    try:
        yield _world
    finally:
        _world.close()
        _world = before
        switch_to(context)
