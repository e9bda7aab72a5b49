"""torch.multiprocessing: ranks are cooperative tasks, not processes, and wait for each other in simulated time."""

import multiprocessing
import sys
from multiprocessing import (
    AuthenticationError,
    BufferTooShort,
    ProcessError,
    TimeoutError,  # noqa: A004 (Python's name)
    cpu_count,
    get_logger,
    log_to_stderr,
)
from typing import Any

from torchemu.multiprocessing._errors import (
    ProcessException,
    ProcessExitedException,
    ProcessRaisedException,
    SpawnException,
    SpawnExitException,
)
from torchemu.multiprocessing._locks import (
    Barrier,
    BoundedSemaphore,
    Condition,
    Event,
    Lock,
    RLock,
    Semaphore,
)
from torchemu.multiprocessing._manager import SyncManager
from torchemu.multiprocessing._pool import Pools
from torchemu.multiprocessing._process import Process, active_children, current_process, parent_process
from torchemu.multiprocessing._queues import JoinableQueue, Queue, SimpleQueue
from torchemu.multiprocessing._queues import pipe as Pipe  # noqa: N812 (Python's name)
from torchemu.multiprocessing._start import (
    does_nothing,
    get_all_sharing_strategies,
    get_all_start_methods,
    get_context,
    get_sharing_strategy,
    get_start_method,
    set_sharing_strategy,
    set_start_method,
)
from torchemu.multiprocessing._values import array as Array  # noqa: N812
from torchemu.multiprocessing._values import raw_array as RawArray  # noqa: N812
from torchemu.multiprocessing._values import raw_value as RawValue  # noqa: N812
from torchemu.multiprocessing._values import value as Value  # noqa: N812
from torchemu.multiprocessing.spawn import ProcessContext, SpawnContext, spawn, start_processes
from torchemu.unsupported import unsupported

ENV_VAR_PARALLEL_START = "TORCH_MP_PARALLEL_START"
Manager = SyncManager
Pool = Pools()
allow_connection_pickling = freeze_support = init_reductions = does_nothing
set_executable = set_forkserver_preload = does_nothing

__all__ = [
    "ENV_VAR_PARALLEL_START",
    "Array",
    "AuthenticationError",
    "Barrier",
    "BoundedSemaphore",
    "BufferTooShort",
    "Condition",
    "Event",
    "JoinableQueue",
    "Lock",
    "Manager",
    "Pipe",
    "Pool",
    "Process",
    "ProcessContext",
    "ProcessError",
    "ProcessException",
    "ProcessExitedException",
    "ProcessRaisedException",
    "Queue",
    "RLock",
    "RawArray",
    "RawValue",
    "Semaphore",
    "SimpleQueue",
    "SpawnContext",
    "SpawnException",
    "SpawnExitException",
    "TimeoutError",
    "Value",
    "active_children",
    "allow_connection_pickling",
    "cpu_count",
    "current_process",
    "freeze_support",
    "get_all_sharing_strategies",
    "get_all_start_methods",
    "get_context",
    "get_logger",
    "get_sharing_strategy",
    "get_start_method",
    "init_reductions",
    "log_to_stderr",
    "multiprocessing",
    "parent_process",
    "set_executable",
    "set_forkserver_preload",
    "set_sharing_strategy",
    "set_start_method",
    "spawn",
    "start_processes",
    "sys",
]

_PICKLING = "how objects go from one process to another means nothing here: ranks are tasks of one process"


def __getattr__(name: str) -> Any:
    """torch itself, and what says that it is not supported."""
    if name == "torch":
        return sys.modules.get("torch", sys.modules["torchemu"])
    if name in ("reducer", "reductions"):
        raise unsupported(f"torch.multiprocessing.{name}", _PICKLING)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
