"""Process: a rank that calls a function of its own. Processes that are started one after another are one spawn."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import Any

from torchemu import runtime
from torchemu.multiprocessing import _helper
from torchemu.multiprocessing._holders import note_start
from torchemu.multiprocessing._ranks import RankProcess, Ranks, birth_of, tasks_of
from torchemu.multiprocessing._start import get_start_method
from torchemu.runtime.rank_local import RankLocal
from torchemu.runtime.tasks import Tasks
from torchemu.runtime.watchdog import Aborted


class Process(RankProcess):
    """A rank that calls ``target(*args, **kwargs)``. The first that is started is rank 0, the next rank 1, ….

    They run while the program that started them waits: for one of them, or for something that they share. One that
    fails prints its traceback and does not concern the others.

    Args:
        group: None.
        target: what to call; a subclass may override run instead.
        name: None is Process-1, Process-2, …, with the name of the class.
        args, kwargs: the arguments.
        daemon: whether it ends when the program ends.
    """

    _start_method: str | None = None  # that which the program has set

    def __init__(
        self,
        group: None = None,
        target: Callable[..., Any] | None = None,
        name: str | None = None,
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
        *,
        daemon: bool | None = None,
    ) -> None:
        if group is not None:
            raise AssertionError("group argument must be None for now")
        number = _numbers.get() + 1
        _numbers.set(number)
        super().__init__(None, -1, name or f"{type(self).__name__}-{number}", bool(daemon))
        self._target, self._args, self._kwargs = target, tuple(args), dict(kwargs or {})

    def run(self) -> None:
        """Runs the target, on the rank."""
        if self._target is not None:
            self._target(*self._args, **self._kwargs)

    def start(self) -> None:
        """Starts it.

        Raises:
            NotImplementedError: others have been started, and waited for, and have not all ended.
        """
        if self._ranks is not None:
            raise AssertionError("cannot start a process twice")
        if _helper.is_wanted():
            self._ranks, self._rank = _helper.Helper(self), 0
            note_start(self)
            return
        batch = _batches.get()
        if not batch or batch[-1].ended:
            batch.append(_Batch(runtime.current()))
        batch[-1].add(self)
        note_start(self)

    def __getstate__(self) -> dict[str, Any]:
        """Returns the state that goes to the rank."""
        return {**self.__dict__, "_ranks": None}


class ForkProcess(Process):
    """One that begins as a copy of the program that starts it."""

    _start_method = "fork"


class SpawnProcess(Process):
    """One that loads the program anew."""

    _start_method = "spawn"


class ForkServerProcess(Process):
    """One that loads the program anew."""

    _start_method = "forkserver"


class ProgramProcess(Process):
    """One that runs another program."""

    _start_method = "program"


PROCESSES = {kind._start_method: kind for kind in (ForkProcess, SpawnProcess, ForkServerProcess)}
"""The processes of each way of starting them."""


class _Batch(Ranks):
    """Processes that run together."""

    def __init__(self, parent: runtime.Context) -> None:
        super().__init__(parent, self._begin)
        self._reported = 0
        self._births: list[Any] = []

    def add(self, process: Process) -> None:
        if self.tasks is not None:
            raise NotImplementedError(
                "a process that is started while others, which were started before, are being waited for is not "
                "supported: start all first, or wait until all have ended"
            )
        self.leave_running(at_exit=not process.daemon)
        self._births.append(birth_of(self.parent, process._start_method or str(get_start_method())))
        process._ranks, process._rank = self, len(self.processes)
        self.processes.append(process)

    def _begin(self) -> Tasks:
        beside = self.parent.meets == len(self.processes) + 1
        calls, births = [_call_of(process) for process in self.processes], self._births
        if beside:
            calls, births = [None, *calls], [births[0], *births]
            for process in self.processes:
                process._rank += 1
        given = (_run_one, calls)
        return tasks_of(self.parent, given, len(calls), lambda: births, together=False, beside=beside)

    def advance(self, until: int = 0, enough: Callable[[], bool] | None = None) -> None:
        """Runs them until what is behind the handle has ended, or it is enough, or they have ended. Prints what went
        wrong."""
        super().advance(until, enough)
        if self.ended:
            self.parent.unjoined = (self,)
        failures = self.begun().failures
        for failure in failures[self._reported :]:
            process, error = self.process_of(failure.rank), failure.exception
            title = "" if isinstance(process, ProgramProcess) else f"Process {process.name}:\n"
            if isinstance(error, Aborted):
                print(f"{title}{type(error.reason).__name__}: {error.reason}", file=sys.stderr)
            elif not isinstance(error, SystemExit):
                print(f"{title}{failure.traceback}", end="", file=sys.stderr)
        self._reported = len(failures)


def _call_of(process: RankProcess) -> Any:
    """Returns the work for the rank: the function, by which it finds its own of that name, or a whole process."""
    if isinstance(process, Process) and type(process) in (Process, ProgramProcess, *PROCESSES.values()):
        return process._target, process._args, process._kwargs
    return process


def _run_one(rank: int, calls: list[Any]) -> None:
    call = calls[rank]
    if isinstance(call, Process):
        call.run()
        return
    target, args, kwargs = call
    if target is not None:
        target(*args, **kwargs)


_numbers = RankLocal(int)
_batches: RankLocal[list[_Batch]] = RankLocal(list)


class MainProcess:
    """A program that was not spawned, as a process."""

    name = "MainProcess"
    daemon = False
    exitcode = None
    _identity = ()

    def __init__(self, context: runtime.Context) -> None:
        self._context = context

    @property
    def pid(self) -> int:
        """The number of its process."""
        return self._context.pid

    ident = pid

    def is_alive(self) -> bool:
        """True."""
        return True


def current_process() -> RankProcess | MainProcess:
    """The rank that asks, or its helper."""
    helper = _helper.running()
    if helper is not None:
        return helper.process
    context = runtime.current()
    ranks = context.tasks.shared.get((Ranks, context.tasks)) if context.tasks is not None else None
    return MainProcess(context) if ranks is None else ranks.process_of(context.rank)


def parent_process() -> RankProcess | MainProcess | None:
    """The program that spawned the rank that asks; None when nobody did."""
    context = runtime.current()
    if _helper.running() is not None:
        return MainProcess(context)
    if isinstance(current_process(), MainProcess) or context.parent is None:
        return None
    return MainProcess(context.parent)


def active_children() -> list[RankProcess]:
    """The ranks that this program has spawned and that have not ended."""
    children = (child for child in runtime.current().children if isinstance(child, Ranks))
    return [process for child in children for process in child.processes if process.is_alive()]
