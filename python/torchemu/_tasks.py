"""Ranks as cooperative tasks: one greenlet each. The Go core's scheduler decides which one runs; this switches."""

from __future__ import annotations

import json
import os
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import greenlet

from torchemu import _runtime
from torchemu._binding import go
from torchemu.errors import DeadlockError

if TYPE_CHECKING:
    from torchemu.distributed import ProcessGroup

_OWN_FILES = os.path.dirname(__file__) + os.sep

_NOBODY, _ASK_AGAIN = -1, -2  # answers of go.Next that are not ranks


class Unwound(BaseException):
    """Raised inside a rank that waits when another rank has failed, so that its ``finally`` blocks run."""


@dataclass(frozen=True)
class Failure:
    """A rank that failed by itself."""

    rank: int
    time_ps: int
    exception: BaseException
    traceback: str


class Tasks:
    """One spawn: the ranks 0 to nprocs-1 of a World, each running fn(rank, *args)."""

    def __init__(self, parent: _runtime.Context, fn: Callable[..., Any], args: tuple[Any, ...], nprocs: int) -> None:
        self.world, self.nprocs = parent.world, nprocs
        self.group: ProcessGroup | None = None  # the default group, where the ranks make one
        self.scheduler: int = go.NewScheduler(self.world.handle, nprocs)
        self.failures: list[Failure] = []
        self.interrupt: KeyboardInterrupt | None = None
        self._fn, self._args = fn, args
        self._unwinding = False
        self._loop = greenlet.getcurrent()
        self._contexts = [_runtime.Context(self.world, r, self, parent) for r in range(nprocs)]
        self._greenlets = [greenlet.greenlet(self._body) for _ in range(nprocs)]
        self._live = nprocs

    def run(self) -> None:
        """Runs all ranks to their end. Afterwards ``failures`` holds those that failed by themselves."""
        context = _runtime.switch_to(None)
        try:
            self._drive()
        except KeyboardInterrupt as interrupt:
            self.interrupt = interrupt
        finally:
            self._unwind()
            _runtime.switch_to(context)  # an interrupt may have come in the middle of a switch
            go.Release(self.scheduler)

    def wait(self, rank: int, waitable: int) -> None:
        """Parks the running rank until what is behind the handle has ended, while others run."""
        if self._unwinding and not go.IsDone(waitable):
            raise Unwound
        if go.Park(self.scheduler, rank, waitable):
            self._loop.switch()
            go.Resumed(self.scheduler, rank)

    def _drive(self) -> None:
        while not self._over():
            try:
                rank = go.Next(self.scheduler)
            except DeadlockError as deadlock:
                self._throw_into_parked(deadlock)
                continue
            if rank == _NOBODY:
                return
            if rank != _ASK_AGAIN:
                self._resume(rank)

    def _over(self) -> bool:
        """A failure ends the run once no other rank can go on without simulated time passing."""
        if self.interrupt is not None:
            return True
        return bool(self.failures) and not go.Runnable(self.scheduler)

    def _resume(self, rank: int, *thrown: BaseException) -> None:
        task = self._greenlets[rank]
        before = _runtime.switch_to(self._contexts[rank])
        try:
            if thrown:
                task.throw(*thrown)
            elif task:
                task.switch()
            else:
                task.switch(rank)
        finally:
            _runtime.switch_to(before)

    def _body(self, rank: int) -> None:
        try:
            self._program(rank)
        except Unwound:
            pass
        except KeyboardInterrupt as interrupt:
            self.interrupt = interrupt
        except BaseException as error:
            if not self._unwinding:  # what comes out of a rank then is not a cause but a consequence
                self._failed(rank, error)
        finally:
            self._live -= 1
            go.Exit(self.scheduler, rank)

    def _program(self, rank: int) -> None:
        """Runs the rank and waits for what it has issued, as a process does that destroys its groups on exit."""
        try:
            self._fn(rank, *self._args)
        except SystemExit as leave:
            if leave.code not in (None, 0):
                raise
        while go.ParkUntilDone(self.scheduler, rank):
            self._loop.switch()
            go.Resumed(self.scheduler, rank)

    def _failed(self, rank: int, error: BaseException) -> None:
        self.failures.append(Failure(rank, go.HostTime(self.world.handle, rank), error, _of_the_program(error)))

    def _throw_into_parked(self, deadlock: DeadlockError) -> None:
        """Makes every parked rank fail where it waits, so that its traceback shows the place."""
        for rank in json.loads(go.Parked(self.scheduler)):
            self._resume(rank, DeadlockError(str(deadlock)))

    def _unwind(self) -> None:
        """Ends the ranks that are still alive, and what they left unfinished."""
        self._unwinding = True
        for rank, task in enumerate(self._greenlets):
            while task and not task.dead:
                self._resume(rank, Unwound())
        if self.failures or self.interrupt or self._live:
            go.Abandon(self.scheduler, self.nprocs)


def _of_the_program(error: BaseException) -> str:
    """The traceback without torchemu's own frames: the last line shown is the program's."""
    shown = traceback.TracebackException.from_exception(error)
    shown.stack[:] = [frame for frame in shown.stack if not frame.filename.startswith(_OWN_FILES)]
    return "".join(shown.format())
