"""Python's own multiprocessing, where a program that starts its ranks itself does so by it."""

from __future__ import annotations

import contextlib
import multiprocessing

import torchemu.multiprocessing
from torchemu.launch.patches import replace

_NAMES = [
    "Array",
    "Barrier",
    "BoundedSemaphore",
    "Condition",
    "Event",
    "JoinableQueue",
    "Lock",
    "Manager",
    "Pipe",
    "Pool",
    "Process",
    "Queue",
    "RLock",
    "Semaphore",
    "SimpleQueue",
    "Value",
    "active_children",
    "current_process",
    "get_all_start_methods",
    "get_context",
    "get_start_method",
    "parent_process",
    "set_start_method",
]


def install(stack: contextlib.ExitStack) -> None:
    """Makes it torch.multiprocessing's until the stack is closed: processes of the system would be in no World.

    Only for a run of one rank. Where there are several, they cannot start ranks, and Python's processes work as they
    do, for what has nothing to do with the World.
    """
    for name in _NAMES:
        replace(stack, multiprocessing, name, getattr(torchemu.multiprocessing, name))
