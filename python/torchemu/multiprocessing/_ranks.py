"""Ranks that a program spawns and does not wait for at once."""

from __future__ import annotations

import atexit
import inspect
import signal
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from torchemu import runtime
from torchemu.bridge import interrupts
from torchemu.bridge.binding import go
from torchemu.multiprocessing._shared import access, limit
from torchemu.multiprocessing._start import hand_down
from torchemu.runtime.tasks import Signalled, Tasks
from torchemu.runtime.waiting import MICROSECOND, reach

if TYPE_CHECKING:
    from torchemu.multiprocessing._helper import Helper


_ENDING, _STEPS = 1000 * MICROSECOND, 10
"""Picoseconds from the return of a process's function to the end of the process, which is less than Python takes, and
in how many steps they pass."""


class Ranks:
    """Ranks of one spawn. They run while the program that spawned them waits.

    Args:
        parent: the program.
        start: makes them; called when they first run.

    Attributes:
        processes: one for each rank.
        tasks: None before they first run.
    """

    def __init__(self, parent: runtime.Context, start: Callable[[], Tasks]) -> None:
        self.parent = parent
        self.processes: list[RankProcess] = []
        self.tasks: Tasks | None = None
        self._start = start

    def begun(self) -> Tasks:
        """Them, begun if they have not been."""
        if self.tasks is None:
            self.tasks = self._start()
            self.tasks.shared[Ranks, self.tasks] = self
            for process in self.processes:
                self.tasks.contexts[process._rank].pid = process.number
        return self.tasks

    @property
    def ended(self) -> bool:
        """Reports whether all have ended."""
        return self.tasks is not None and self.tasks.ended

    def context_of(self, pid: int) -> runtime.Context | None:
        """Returns the context of the rank whose process has this number; None where there is no such one."""
        own = (each._rank for each in self.processes if each.number == pid and not each.is_joined)
        rank = next(own, None)
        return None if rank is None else self.begun().contexts[rank]

    def process_of(self, rank: int) -> RankProcess:
        """Returns the process that a rank is."""
        return next(process for process in self.processes if process._rank == rank)

    def leave_running(self, at_exit: bool = True) -> None:
        """Lets them run whenever the program waits; at_exit also to their end when it ends."""
        if self not in self.parent.children:
            self.parent.children.append(self)
        if at_exit:
            atexit.register(self._finish)

    def _finish(self) -> None:
        if self in self.parent.children:
            self.advance()

    def are_ours(self) -> bool:
        """Reports whether it is the running thread that runs them while it waits: the first that has waited for them,
        or, before, the main program's."""
        if self.tasks is None:
            return self.parent.task == self.parent.rank
        return self.parent.world.fibers.current() is self.tasks.loop

    def advance(self, until: int = 0, enough: Callable[[], bool] | None = None) -> None:
        """Runs them until what is behind the handle has ended, or it is enough, or they have ended."""
        tasks = self.begun()
        tasks.advance(until, enough)
        while not tasks.ended and self.parent.is_signalled():
            assert self.parent.process is not None
            self.parent.process.handle_signals()
            tasks.advance(until, enough)
        if tasks.ended and self in self.parent.children:
            self.parent.children.remove(self)
            atexit.unregister(self._finish)
        if tasks.interrupt is not None:
            raise tasks.interrupt

    def wait(self, timeout: float | None = None, enough: Callable[[], bool] | None = None) -> None:
        """Runs them until it is enough, or simulated time has passed the timeout, in seconds, or they have ended."""
        if timeout is None:
            self.advance(enough=enough)
            return
        timer = go.Timer(self.parent.world.handle, self.parent.rank, limit(timeout))
        try:
            self.advance(timer, enough)
        finally:
            go.Release(timer)


def _let_it_end() -> None:
    """Lets a process end whose function has returned: threads of the program that it has told something, an error say,
    act on it before the program goes on. They do at each step: time that ranks wait for does not stop for them."""
    for _ in range(_STEPS):
        reach(_ENDING // _STEPS)


NESTED = (
    "spawn inside a spawned rank is not supported: each process has a device of its own, and all are in use. A program "
    "that starts its processes itself is started once: torchemu run --nproc-per-node 1"
)
"""The refusal of processes that one of several ranks starts as ranks."""

_UNGUARDED = (
    "An attempt has been made to start a new process before the current process has finished its bootstrapping phase: "
    "each process loads the main program anew, which started processes again. What starts them belongs under "
    "\"if __name__ == '__main__':\""
)


def loads_main() -> bool:
    """Reports whether the running rank is one that is still loading the main program, as a spawned one does first."""
    frame = inspect.currentframe()
    while frame is not None:
        if frame.f_code.co_name == "<module>" and frame.f_globals.get("__name__") == "__mp_main__":
            return True
        frame = frame.f_back
    return False


def tasks_of(
    parent: runtime.Context,
    call: tuple[Callable[..., Any], *tuple[Any, ...]],
    nprocs: int,
    births: Callable[[], Sequence[Any]],
    together: bool = True,
    beside: bool = False,
) -> Tasks:
    """The ranks that a program starts.

    Args:
        parent: the rank that does.
        call: what they call, with their number and then the other arguments here.
        nprocs: how many.
        births: says what the process of each begins with, where they have processes.
        together: whether they are unwound when one of them fails.
        beside: the first is the parent itself, which runs already.

    Raises:
        RuntimeError: the program is one of several ranks itself.
        ValueError: nprocs is not positive, or the topology has fewer SIPs.
    """
    if parent.tasks is not None and parent.tasks.nprocs > 1:
        raise RuntimeError(_UNGUARDED if loads_main() else NESTED)
    world = parent.world
    if nprocs > world.sips and world.room_for is not None:
        parent.synchronize()
        world.room_for(nprocs)
    fn, args = call[0], call[1:]
    processes: Sequence[runtime.Process] = ()
    if parent.process is not None:
        fn, processes = parent.process.spawned(call, births())
        args = ()
    function, acts = _ended_by_interrupts(fn) if together else fn, lambda rank: rank > 0 or not beside
    tasks = Tasks(parent, function, args, nprocs, processes, together, acts)
    if beside:
        tasks.stand_beside()
    hand_down(tasks.contexts)
    return tasks


def birth_of(parent: runtime.Context, method: str) -> Any:
    """Returns what a process that the rank starts now begins with; None where it has none itself.

    Args:
        method: the way of starting processes.
    """
    return None if parent.process is None else parent.process.birth(method)


def _ended_by_interrupts(fn: Callable[..., Any]) -> Callable[..., None]:
    """The function, for which a KeyboardInterrupt of the program's own is an end like any other."""

    def program(rank: int, *args: Any) -> None:
        try:
            fn(rank, *args)
        except KeyboardInterrupt as interrupt:
            if interrupts.is_users(interrupt):
                raise

    return program


class RankProcess:
    """A rank, as a process.

    Attributes:
        name: as Python names processes.
        daemon: means nothing for the ranks of spawn.
        number: what pid is after the start.
        is_joined: it has ended, and the program has waited for that: to the system its number is nobody's.
    """

    def __init__(self, ranks: Ranks | Helper | None, rank: int, name: str, daemon: bool = False) -> None:
        self.name, self.daemon = name, daemon
        self.number = next(runtime.current_world().pids)
        self._ranks, self._rank = ranks, rank
        self._closed = self.is_joined = False

    def __repr__(self) -> str:
        state = "initial"
        if self._closed:
            state = "closed"
        elif self._ranks is not None:
            state = "started" if self._code() is None else "stopped"
        return f"<{type(self).__name__} name={self.name!r} rank={self._rank} {state}>"

    @property
    def pid(self) -> int | None:
        """A number that no process of the system has: ranks are tasks of one. None before the start."""
        return None if self._ranks is None else self.number

    ident = sentinel = pid

    @property
    def ranks(self) -> Ranks | Helper | None:
        """The ranks that it is one of, or the helper that it is; None before the start."""
        return self._ranks

    @property
    def context(self) -> runtime.Context | None:
        """The context that it runs in; None before it first runs."""
        if self._ranks is None or self._ranks.tasks is None:
            return None
        return self._ranks.tasks.contexts[self._rank]

    @property
    def _identity(self) -> tuple[int, ...]:
        return (self._rank + 1,)

    @property
    def exitcode(self) -> int | None:
        """0 when it has ended well, 1 after an exception, the status of sys.exit, minus the number of the signal that
        has ended it; None while it has not ended."""
        self._check_open()
        code, process = self._code(), runtime.process()
        if code is None and process is not None:
            process.watches = True
        return code

    def _code(self) -> int | None:
        """Acts as exitcode, for who waits otherwise than by asking again."""
        if self._ranks is None or self._ranks.tasks is None:
            return None
        return self._ranks.tasks.exit_codes[self._rank]

    def is_alive(self) -> bool:
        """Reports whether it has been started and has not ended. Takes a moment, in which it may."""
        if self._ranks is None:
            return False
        if not self._is_inside():
            access()
        return self.exitcode is None

    def join(self, timeout: float | None = None) -> None:
        """Waits until it has ended, or simulated time has passed the timeout, in seconds."""
        if self._ranks is None:
            raise AssertionError("can only join a started process")
        if self._is_inside():
            raise AssertionError("can only join a child process")
        self._check_open()
        had_ended = self._code() is not None
        self._ranks.wait(timeout, lambda: self._code() is not None)
        if self._code() is not None:
            if not had_ended:
                _let_it_end()
            self.is_joined = True

    def terminate(self) -> None:
        """Ends it where it waits, as SIGTERM does; its ``finally`` blocks run."""
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """Ends it where it waits, as SIGKILL does, but that its ``finally`` blocks run."""
        self._end(signal.SIGKILL)

    def _end(self, number: int) -> None:
        if self._ranks is None:
            raise AssertionError("can only terminate a started process")
        if self._is_inside():
            raise AssertionError("can only terminate a child process")
        self._ranks.begun().kill(self._rank, Signalled(number))

    def close(self) -> None:
        """Makes it useless. It has to have ended."""
        if not self._closed and self._ranks is not None and self._code() is None:
            raise ValueError(
                "Cannot close a process while it is still running. You should first call join() or terminate()."
            )
        self._closed = True

    def _check_open(self) -> None:
        if self._closed:
            raise ValueError("process object is closed")

    def _is_inside(self) -> bool:
        """Reports whether it is one of the ranks itself that asks."""
        return self._ranks is not None and runtime.current() is not self._ranks.parent
