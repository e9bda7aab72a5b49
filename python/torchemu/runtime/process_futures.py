"""Futures of pools of processes, and of event loops that packages run: their results come from threads that are in no
schedule.

Who waits for one of them waits as in Python, and other ranks meanwhile.
"""

from __future__ import annotations

import threading
from concurrent.futures import Future
from types import ModuleType
from typing import Any


class OfProcess(Future[Any]):
    """A future whose result comes from a thread that is in no schedule."""

    def __init__(self) -> None:
        super().__init__()
        self._condition = threading.Condition()


def wait_beside_schedule(futures: ModuleType) -> Any:
    """Returns a module's ``_create_and_install_waiters``, by which wait() and as_completed() hear of several futures,
    for futures of processes, too.

    Args:
        futures: concurrent.futures._base, or a copy of it, whose own events are a rank's.
    """
    real = futures._create_and_install_waiters

    def made(awaited: Any, return_when: str) -> Any:
        waiter = real(awaited, return_when)  # of which no future tells anything yet: the caller has their locks
        if all(isinstance(future._condition, threading.Condition) for future in awaited):
            waiter.event = threading.Event()
        return waiter

    return made
