"""A process that one of several ranks starts: it helps its rank, as those that write a checkpoint do."""

from __future__ import annotations

import contextlib
import sys
import traceback
from collections.abc import Callable
from typing import TYPE_CHECKING

import greenlet

from torchemu import runtime
from torchemu.errors import RankKilledError
from torchemu.multiprocessing._locks import Event
from torchemu.multiprocessing._ranks import NESTED, loads_main
from torchemu.runtime.rank_local import RankLocal, ThreadLocal
from torchemu.runtime.tasks import Signalled, Unwound

if TYPE_CHECKING:
    from torchemu.multiprocessing._process import Process

_ENDS_OF_RANKS = (Unwound, RankKilledError, greenlet.GreenletExit)


class Helper:
    """The place of a process among those of its rank: a thread of the rank, which has the rank's memory, and no copy.

    Args:
        process: what it runs.

    Attributes:
        process: the argument.
        parent: the rank.
        contexts: where it runs: in the rank's.
        exit_codes: of the process: 0, 1 after an exception, the status of sys.exit; None while it has not ended.
    """

    def __init__(self, process: Process) -> None:
        self.parent = runtime.current()
        self.contexts = [self.parent]
        self.exit_codes: list[int | None] = [None]
        self.process, self._over = process, Event()
        self._is_killed = False
        from torchemu.runtime import threads  # which programs without threads do not load

        self._thread = threads.of_rank().begin(repr(process.name), process.daemon, self._run)

    @property
    def tasks(self) -> Helper:
        """The holder of the exit codes: itself."""
        return self

    def begun(self) -> Helper:
        """The handle by which it would be killed: itself."""
        return self

    def kill(self, number: int, signalled: Signalled) -> None:
        """Ends it where it waits, by an exception that is raised there, where it has not ended."""
        assert self.parent.tasks is not None
        if self.exit_codes[0] is None:
            self._is_killed = True
            self.parent.tasks.drop_thread(self._thread, signalled)
            self._end(signalled.code)

    def wait(self, timeout: float | None = None, enough: Callable[[], bool] | None = None) -> None:
        """Waits until it has ended, or simulated time has passed the timeout, in seconds."""
        self._over.wait(timeout)

    def _run(self) -> None:
        _running.set(self)
        with contextlib.suppress(*_ENDS_OF_RANKS):
            code = self._outcome()
            if not self._is_killed:
                self._end(code)

    def _outcome(self) -> int:
        """Runs the process. Returns its exit code."""
        try:
            self.process.run()
        except SystemExit as leave:
            return leave.code if isinstance(leave.code, int) else int(leave.code is not None)
        except _ENDS_OF_RANKS:
            raise
        except BaseException:
            print(f"Process {self.process.name}:\n{traceback.format_exc()}", end="", file=sys.stderr)
            return 1
        return 0

    def _end(self, code: int) -> None:
        self.exit_codes[0] = code
        self._over.set()


_running: ThreadLocal[Helper | None] = ThreadLocal(lambda: None)


def running() -> Helper | None:
    """Returns the helper that asks; None for the rank itself."""
    return _running.get()


class Closing:
    """Closing tells who has closed something: a rank, or a process that helps it. Others may go on using it."""

    def __init__(self) -> None:
        self._by: RankLocal[set[Helper | None]] = RankLocal(set)

    def get(self) -> bool:
        """Reports whether the running one has closed it."""
        return running() in self._by.get()

    def set(self) -> None:
        """Notes that the running one has closed it."""
        self._by.get().add(running())

    def is_by(self, context: runtime.Context, helper: Helper | None) -> bool:
        """Reports whether a rank has closed it, or a process that helps this rank."""
        return helper in (self._by.of(context) or ())


def is_wanted() -> bool:
    """Reports whether a process is a helper: one of several ranks starts it."""
    tasks = runtime.current().tasks
    return tasks is not None and tasks.nprocs > 1 and not loads_main()


def check_may_join() -> None:
    """Refuses to let a helper join a process group.

    Raises:
        RuntimeError: a helper asks.
    """
    if running() is not None:
        raise RuntimeError(NESTED)
