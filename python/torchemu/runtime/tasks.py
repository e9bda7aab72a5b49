"""Ranks and their threads as cooperative tasks: one greenlet each. The core's scheduler decides which one runs; this
switches."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NoReturn

import greenlet

from torchemu import runtime
from torchemu.bridge import interrupts
from torchemu.bridge.binding import go
from torchemu.errors import DeadlockError, KernelError, RaceError, RankKilledError
from torchemu.runtime import fibers, footprints
from torchemu.runtime import frames as _frames

if TYPE_CHECKING:
    from torchemu.runtime.threads import Thread

_ASK_AGAIN = -2  # the answer of go.Next that no task can run yet
_SLEEP = -3  # that there is time to sleep before one can
_NOT_PARKED = -4  # of go.Leave, that there is nothing to wait for
_PS_PER_SECOND = 10**12
_LANDS = _PS_PER_SECOND // 10_000  # after so long what a device program has sent is there
_sleep = time.sleep  # the process's: programs may get to see another one
_TERMINATED = -signal.SIGTERM  # the exit code of a process that is ended by it


class Unwound(BaseException):
    """Raised inside a rank that waits when another rank has failed, so that its ``finally`` blocks run."""


class Signalled(SystemExit):
    """The end of a rank by a signal.

    Attributes:
        code: the exit code, minus the signal's number.
    """

    code: int

    def __init__(self, number: int) -> None:
        super().__init__(-int(number))


@dataclass(frozen=True)
class Failure:
    """A rank that failed by itself, and the number of its process."""

    rank: int
    time_ps: int
    exception: BaseException
    traceback: str
    pid: int


class Tasks:
    """One spawn: the ranks 0 to nprocs-1 of a World, each running fn(rank, *args), in a process of its own if given.

    Attributes:
        when_returned: called with a rank whose program has returned, by whom they are for. What they raise fails it.
        failures: the ranks that failed by themselves.
        exit_codes: by rank, as of a process; None while it has not ended.
        live: how many have not ended.
        ended: whether all have ended.
        contexts: those of the ranks.
        is_beside: the first place is their parent's, which meets them as the rank of that number.
        grace: picoseconds that ranks may go on after one has failed; None is until they wait.
        when_failed: what is called with the failures, if there are any, before what is left is ended.
        loop: the fiber that decides who runs.
        looked_at: what the loop is to call once, when it comes by; another thread may set it.
    """

    def __init__(
        self,
        parent: runtime.Context,
        fn: Callable[..., Any],
        args: tuple[Any, ...],
        nprocs: int,
        processes: Sequence[runtime.Process | None] = (),
        together: bool = True,
        acts: Callable[[int], bool] = lambda rank: True,
    ) -> None:
        """Spawns as spawn does; together says whether a rank that fails takes the others with it, and acts whether one
        runs at all, or another stands for it."""
        self.world, self.nprocs = parent.world, nprocs
        self._parent = parent
        self.group: Any = None  # the default group, where the ranks make one
        self.shared: dict[object, Any] = {}  # by whom it is for: what the ranks find there and nobody else does
        world = self.world
        self.scheduler: int = go.NewScheduler(world.handle, nprocs, world.schedule, world.seed, world.numbers)
        self.when_returned: dict[object, Callable[[runtime.Context], None]] = {}
        self.failures: list[Failure] = []
        self.exit_codes: list[int | None] = [None] * nprocs
        self.ended = False
        self.when_failed: list[Callable[[Sequence[Failure]], None]] = []
        self.interrupt: KeyboardInterrupt | None = None
        self.looked_at: Callable[[], None] | None = None
        self.grace: int | None = None
        self._grace_end = 0  # a timer's handle
        self._doomed: list[tuple[int, BaseException]] = []
        self._fn, self._args = fn, args
        self._together = together
        self._unwinding = False
        self._dropped: set[int] = set()  # threads that are being ended
        self._fibers = self.world.fibers
        self._are_threads = isinstance(self._fibers, fibers.Threads)
        self.loop = self._fibers.current()
        self._is_simple = True  # all that is to be decided is who runs next
        self._found: int | DeadlockError | None = None  # what a task that handed over has found, for the loop
        processes = processes or [None] * nprocs
        self.threads: dict[int, Thread] = {}  # of the ranks, by task
        self.contexts = [runtime.Context(self.world, r, self, parent, p) for r, p in enumerate(processes)]
        self._greenlets = [self._fibers.new(self._body, self.loop) for _ in range(nprocs)]
        self.live = nprocs
        self.is_beside = False
        for rank in range(nprocs):
            if not acts(rank):
                self._exited(rank, 0)

    def stand_beside(self) -> None:
        """Leaves the first place to the parent: what the ranks find, and nobody else does, is the parent's, too."""
        self.is_beside = True
        self.exit_codes[0] = None
        self.shared = self._parent.own if self._parent.tasks is None else self._parent.tasks.shared

    def run(self) -> None:
        """Runs all ranks to their end."""
        self.advance()

    def advance(self, until: int = 0, enough: Callable[[], bool] | None = None) -> None:
        """Runs the ranks until what is behind the handle has ended, or it is enough, or they have ended."""
        if self.ended:
            return
        if self._fibers.current() is not self.loop:
            raise RuntimeError("ranks are waited for by the thread that has waited for them first, and by no other")
        before = runtime.running()
        over = True
        try:
            go.Until(self.scheduler, until)
            self._is_simple = until == 0 and enough is None and self._parent.threads is None
            with interrupts.ends_the_process():
                over = self._drive(
                    None if self._is_simple else lambda: bool((until and go.IsDone(until)) or (enough and enough()))
                )
        except KeyboardInterrupt as interrupt:
            self.interrupt = interrupt
        finally:
            if over:
                self._end()
            self._return_to(before)

    def takes(self, interrupt: BaseException) -> bool:
        """Reports whether Ctrl-C is not to be raised here and now: while a thread of a rank runs it is for the rank's
        main program, as in Python, and where ranks are threads it comes to another. The main program gets it where it
        waits."""
        context = runtime.running()
        if context is None or self._fibers.runs(self.loop) or not (self._are_threads or context.thread is not None):
            return False
        self.doom(context.rank, interrupt)
        return True

    def insist(self) -> None:
        """Raises Ctrl-C, which it has taken and nobody has noticed yet, in the middle of a main program that does not
        come to a wait. Another thread calls it. A thread of a rank goes on."""
        for doomed in [*self._doomed]:
            rank, error = doomed
            if isinstance(error, interrupts.CtrlC) and self._fibers.runs(self._greenlets[rank]):
                self._doomed.remove(doomed)
                self._fibers.interrupt_in(self._greenlets[rank], error)

    def kill(self, rank: int, error: BaseException | None = None) -> None:
        """Ends one rank where it waits, by an exception that is raised there; without one as SIGTERM does."""
        error = Signalled(signal.SIGTERM) if error is None else error
        if self._fibers.current() is not self.loop:  # a thread that does not wait for them
            self.doom(rank, error)
            return
        if isinstance(error, interrupts.CtrlC):
            error.notice()
        before = runtime.running()
        if self._greenlets[rank]:
            self._resume(rank, error)
        elif isinstance(error, interrupts.CtrlC):  # it has ended meanwhile; the run has not
            self.interrupt = error
        elif self.exit_codes[rank] is None:  # it has not begun
            self._greenlets[rank].throw(greenlet.GreenletExit)
            self._failed(rank, error)
            self._exited(rank, _exit_code(error))
        self._return_to(before)

    def _return_to(self, context: runtime.Context | None) -> None:
        """Goes on with who has let ranks run, on the loop's thread: what it has of its own is in place again."""
        runtime.switch_to(context)
        self._fibers.go_on()

    def doom(self, rank: int, error: BaseException) -> None:
        """Kills a rank as soon as the task that is running waits."""
        footprints.hide()
        self._doomed.append((rank, error))

    def leave(self, rank: int, error: BaseException) -> NoReturn:
        """Ends the running rank, by an exception in its main program, whichever of its threads it is that runs."""
        raise self.ending(rank, error)

    def ending(self, rank: int, error: BaseException) -> BaseException:
        """Returns what is to be raised in the running rank, so that its main program ends by an exception."""
        if self.contexts[rank].thread is None:
            return error
        self.doom(rank, error)
        return Unwound()

    def wait(self, task: int, waitable: int) -> bool:
        """Parks the running task until what is behind the handle has ended, while others run.

        Returns:
            Whether it is known that nothing is under way any more on the memory of what was waited for, a tensor.
        """
        if (self._unwinding or task in self._dropped) and not go.IsDone(waitable):
            raise Unwound
        at_rest: bool = self._parked(task, waitable) and go.Resumed(self.scheduler, task)
        return not self._handle_signals(task) and at_rest

    def _handle_signals(self, task: int) -> bool:
        """Calls the handlers of the signals that have come to a rank. Returns whether there were any."""
        process = self.contexts[task].process if task < self.nprocs else None
        if process is None or not process.signals_due:
            return False
        footprints.hide()
        process.handle_signals()
        return True

    def _parked(self, task: int, waitable: int) -> bool:
        """Parks the running task, and lets others run until it goes on. Returns false where there is nothing to wait
        for."""
        if self._hands_over():
            following = go.Leave(self.scheduler, task, waitable)
            if following == _NOT_PARKED:
                return False
            self._leave_to(following if following >= 0 else self._next(following), task)
            return True
        if not go.Park(self.scheduler, task, waitable):
            return False
        self.loop.switch()
        return True

    def _hands_over(self) -> bool:
        """Reports whether a task that parks hands over to the next one itself, as threads do. Where there may be more
        to decide than who that is, the loop does."""
        return (
            self._are_threads
            and self._is_simple
            and not (self._doomed or self.failures or self.interrupt or self.looked_at)
        )

    def _leave(self, task: int) -> None:
        """Lets others run until the task, which has parked, goes on."""
        if self._hands_over():
            self._leave_to(self._next(), task)
        else:
            self.loop.switch()

    def _leave_to(self, following: int | DeadlockError, task: int) -> None:
        """Lets the following task run, and others, until the task, which has parked, goes on."""
        if following == task:
            return
        if type(following) is int and following >= 0:
            self._switch_to(following)
        else:
            self._found = following
            self.loop.switch()

    def _next(self, answer: int | None = None) -> int | DeadlockError:
        """Acts as go.Next, once more than asking again would do. Device programs take their turns on the loop's thread.

        Args:
            answer: what it has answered already.
        """
        try:
            task = go.Next(self.scheduler) if answer is None else answer
            while task == _ASK_AGAIN and not (self._is_over() or self._doomed):
                if self.world.programs is not None:
                    return _ASK_AGAIN
                self.world.take_turns()
                task = go.Next(self.scheduler)
        except DeadlockError as deadlock:
            return deadlock
        return int(task)

    def _switch_to(self, task: int) -> None:
        if task < self.nprocs:
            self._resume(task)
        else:
            self._resume_thread(self.threads[task])

    def let_others_run(self, task: int) -> None:
        """Lets the schedule choose who goes on, of the running task and of those that can."""
        if not self._unwinding and task not in self._dropped:
            go.Offer(self.scheduler, task)
            self.loop.switch()
            self._handle_signals(task)

    def _drive(self, enough: Callable[[], bool] | None) -> bool:
        """Reports false when it is enough, or when the one that has spawned these ranks has signals to handle, and true
        when the run is over. None is for a run that is simple."""
        while not self._is_over():
            self._look()
            if enough is not None:
                self._let_threads_of_parent_run()
                if (enough() and not self._is_ending()) or self._parent.is_signalled():
                    return False
            try:
                task = go.Next(self.scheduler) if self._found is None else self._taken()
            except DeadlockError as deadlock:
                if not (self._parent_may_help() or self.world.let_go()):
                    self._throw_into_parked(deadlock)
                continue
            if task == _ASK_AGAIN:
                self.world.take_turns()
            elif task == _SLEEP:
                _sleep(go.Pause(self.scheduler) / _PS_PER_SECOND)
            elif task >= 0:
                self._switch_to(task)
            while self._doomed:
                self.kill(*self._doomed.pop(0))
        return True

    def _look(self) -> None:
        """Does what a thread that watches the run has asked for."""
        if self.looked_at is not None:
            look, self.looked_at = self.looked_at, None
            look()

    def _taken(self) -> int:
        """Acts as go.Next, which a task that handed over has asked already."""
        found, self._found = self._found, None
        if isinstance(found, DeadlockError):
            raise found
        assert found is not None
        return found

    def _let_threads_of_parent_run(self) -> None:
        """The one that has spawned these ranks waits here."""
        parent = self._parent
        if parent.threads is not None and parent.tasks is not None and go.Runnable(parent.tasks.scheduler):
            go.Yield(parent.tasks.scheduler, parent.task)
            parent.tasks.loop.switch()

    def _parent_may_help(self) -> bool:
        """Reports whether a thread of the program that has spawned the ranks may, in time, let them go on, where none
        can."""
        parent = self._parent
        if parent.threads is None or parent.tasks is None:
            return False
        return bool(go.Outwait(parent.tasks.scheduler, self.scheduler))

    def _is_ending(self) -> bool:
        return self._together and bool(self.failures)

    def _is_over(self) -> bool:
        """A failure ends the run once no other rank can go on without simulated time passing, or after the grace."""
        if self.interrupt is not None or self.live == 0:
            return True
        if self._grace_end:
            return go.IsDone(self._grace_end)
        return bool(self.failures) and self._is_ending() and not go.Runnable(self.scheduler)

    def _end(self) -> None:
        if self.failures:
            self._look_for_races()
            for call in self.when_failed:
                call(self.failures)
        self._unwind()
        self.ended = True
        self.world.lent.take_back()
        go.Release(self.scheduler)
        if self._grace_end:
            go.Release(self._grace_end)

    def _look_for_races(self) -> None:
        """Lets what is under way land where device programs are checked. A rank that finds wrong values, and fails by
        that, may do so before what should have been there comes, and the race with it is the reason."""
        world, first = self.world, self.failures[0]
        if world.programs is None or not world.strictness.check or isinstance(first.exception, RaceError | KernelError):
            return
        timer = go.Timer(world.handle, first.rank, _LANDS)
        try:
            while not go.Await(world.handle, first.rank, timer):
                world.take_turns()
            go.Untold(world.handle)
        except (RaceError, KernelError) as error:
            error.__context__ = first.exception
            self.failures[0] = replace(first, exception=error, traceback=_of_the_program(error))
        finally:
            go.Release(timer)

    def _resume(self, rank: int, *thrown: BaseException) -> None:
        """Switches to the rank until it waits or ends. Its context stays: the next rank's replaces it."""
        task, context = self._greenlets[rank], self.contexts[rank]
        runtime.switch_to(context)
        if context.threads is not None:
            context.threads.enter(None)
        if thrown:
            task.throw(*thrown)
        elif task:
            task.switch()
        else:
            task.switch(rank)

    def _resume_thread(self, thread: Thread) -> None:
        """Acts as _resume, for a thread of a rank."""
        runtime.switch_to(thread.context)
        thread.threads.enter(thread)
        thread.go_on()

    def _body(self, rank: int) -> None:
        code = _TERMINATED
        try:
            self._program(rank)
            code = 0
        except (Unwound, RankKilledError):
            pass
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt) and interrupts.is_users(error):
                self.interrupt = error
                if isinstance(error, interrupts.CtrlC):
                    error.rank = rank
            elif not self._unwinding:  # what comes out of a rank then is not a cause but a consequence
                self._failed(rank, error)
                code = _exit_code(error)
        finally:
            self._drop_threads(self.contexts[rank])
            self._exited(rank, code)

    def _drop_threads(self, context: runtime.Context) -> None:
        """Ends the threads that a rank leaves behind: daemons, or all when it has failed."""
        threads = context.threads
        if threads is None:
            return
        if context.process is not None:
            context.process.hush()
        while threads.living:
            self.drop_thread(next(iter(threads.living.values())), Unwound())

    def drop_thread(self, thread: Thread, error: BaseException) -> None:
        """Ends a thread of the running rank, which is not the running one, where it waits, by an exception."""
        before = thread.threads.running
        self._dropped.add(thread.task)
        thread.threads.enter(thread)
        thread.drop(error)
        thread.threads.enter(before)
        self._dropped.remove(thread.task)

    def _exited(self, rank: int, code: int) -> None:
        footprints.use(footprints.ENDS, footprints.TOGETHER)
        self.exit_codes[rank] = code
        self.live -= 1
        go.Exit(self.scheduler, rank)

    def _program(self, rank: int) -> None:
        """Runs the rank and waits for what it has issued, as a process does that destroys its groups on exit."""
        process = self.contexts[rank].process
        try:
            with _forked_children_end():
                if process is None:
                    self._fn(rank, *self._args)
                else:
                    process.call(self._fn, rank, *self._args)
        except SystemExit as leave:
            if leave.code not in (None, 0):
                raise
        for call in (*self.when_returned.values(),):
            call(self.contexts[rank])
        self.contexts[rank].issue()
        while go.ParkUntilDone(self.scheduler, rank):
            self._leave(rank)
            go.Resumed(self.scheduler, rank)

    def _failed(self, rank: int, error: BaseException) -> None:
        footprints.fail()
        error = _said(error)
        time, pid = go.HostTime(self.world.handle, rank), self.contexts[rank].pid
        self.failures.append(Failure(rank, time, error, _of_the_program(error), pid))
        if self._together and self.grace is not None and not self._grace_end:
            self._grace_end = go.Timer(self.world.handle, rank, self.grace)
            go.Until(self.scheduler, self._grace_end)

    def _throw_into_parked(self, deadlock: DeadlockError) -> None:
        """Makes every parked rank fail where it waits, so that its traceback shows the place."""
        footprints.hide()
        self.world.waits = deadlock.waits
        for rank in go.Parked(self.scheduler):
            self.contexts[rank].deadlock = own = DeadlockError(deadlock.report, deadlock.cause)
            self._resume(rank, own)

    def _unwind(self) -> None:
        """Ends the ranks that are still alive, and what they left unfinished."""
        self._unwinding = True
        for rank, task in enumerate(self._greenlets):
            while task and not task.dead:
                self._resume(rank, Unwound())
        if self.failures or self.interrupt or self.live:
            self.world.abandon_programs("a rank of the launch's spawn failed")
            go.Abandon(self.scheduler, self.nprocs)


@contextlib.contextmanager
def _forked_children_end() -> Iterator[None]:
    """A child that the program forks ends where its program does: the rest of the run, and its report, are the
    parent's."""
    code = 0
    try:
        yield
    except BaseException as error:
        if not go.forked:
            raise
        code = _exit_code(error)
        if not isinstance(error, SystemExit):
            print(_of_the_program(error), end="", file=sys.stderr)
    if go.forked:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code & 0xFF)


def _exit_code(error: BaseException) -> int:
    """Returns the exit code of a process which the exception ends."""
    if isinstance(error, KeyboardInterrupt):
        return -signal.SIGINT
    return error.code if isinstance(error, SystemExit) and isinstance(error.code, int) else 1


def _said(error: BaseException) -> BaseException:
    """Puts the words of an exception in the place of what it makes them of, such as tensors: only its rank can read
    these, and only now. Returns the exception, or the race that is told when they are read."""
    own = type(error).__module__ == "builtins" and type(error).__str__ is BaseException.__str__
    if own and not all(isinstance(part, str | int | float) for part in error.args):
        try:
            error.args = (str(error),)
        except (RaceError, KernelError) as race:
            error.args = ("what it says cannot be read: see below",)
            race.__context__ = error
            return race
        except Exception:  # it has no words
            pass
    return error


def _of_the_program(error: BaseException) -> str:
    """The traceback without torchemu's own frames: the last line shown is the program's."""
    shown = traceback.TracebackException.from_exception(error)
    _frames.cut(shown)
    return "".join(shown.format())


def _taken(interrupt: interrupts.CtrlC) -> bool:
    """Gives Ctrl-C to the task that it is for, where that is not the running one."""
    context = runtime.running()
    return context is not None and context.tasks is not None and context.tasks.takes(interrupt)


def _insist() -> None:
    """Raises Ctrl-C where the running task is one that it has been left to."""
    context = runtime.running()
    if context is not None and context.tasks is not None:
        context.tasks.insist()


interrupts.given_to(_taken, _insist)
