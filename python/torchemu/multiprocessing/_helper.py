"""A process that one of several ranks starts by a fork: it helps its rank, as those that write a checkpoint do."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable
from typing import TYPE_CHECKING

import greenlet

from torchemu import runtime
from torchemu.errors import RankKilledError
from torchemu.multiprocessing._locks import Event
from torchemu.runtime.tasks import Signalled, Unwound

if TYPE_CHECKING:
    from torchemu.multiprocessing._process import Process


class Helper:
    """The place of a process among those of its rank: a thread of the rank, which has the rank's memory, and no copy.

    Args:
        process: what it runs.

    Attributes:
        parent: the rank.
        exit_codes: of the process: 0, 1 after an exception, the status of sys.exit; None while it has not ended.
    """

    def __init__(self, process: Process) -> None:
        self.parent = runtime.current()
        self.exit_codes: list[int | None] = [None]
        self._process, self._over = process, Event()
        from torchemu.runtime import threads  # which programs without threads do not load

        threads.of_rank().begin(repr(process.name), process.daemon, self._run)

    @property
    def tasks(self) -> Helper:
        """The holder of the exit codes: itself."""
        return self

    def begun(self) -> Helper:
        """The handle by which it would be killed: itself."""
        return self

    def kill(self, number: int, signalled: Signalled) -> None:
        """Refuses.

        Raises:
            NotImplementedError: always.
        """
        raise NotImplementedError(
            f"process {self._process.name} is a helper of rank {self.parent.rank}, and runs until it ends: it "
            "cannot be terminated"
        )

    def wait(self, timeout: float | None = None, enough: Callable[[], bool] | None = None) -> None:
        """Waits until it has ended, or simulated time has passed the timeout, in seconds."""
        self._over.wait(timeout)

    def _run(self) -> None:
        try:
            self._process.run()
            self._end(0)
        except SystemExit as leave:
            self._end(leave.code if isinstance(leave.code, int) else int(leave.code is not None))
        except (Unwound, RankKilledError, greenlet.GreenletExit):
            pass  # the rank ends
        except BaseException:
            print(f"Process {self._process.name}:\n{traceback.format_exc()}", end="", file=sys.stderr)
            self._end(1)

    def _end(self, code: int) -> None:
        self.exit_codes[0] = code
        self._over.set()


def is_wanted(start_method: str) -> bool:
    """Reports whether a process is a helper: one of several ranks forks it."""
    tasks = runtime.current().tasks
    return start_method == "fork" and tasks is not None and tasks.nprocs > 1
