"""Modules of Python's library that a rank has of its own: those by which programs use threads.

A copy is the module's own code, executed anew. What it imports itself are copies, too, where there are such, and a few
stand-ins: ``_thread`` is ours, ``time.monotonic`` tells simulated time, and ``os`` has nothing to do at forks.
"""

from __future__ import annotations

import importlib
import importlib.util
import types
from collections.abc import Callable
from typing import Any

from torchemu.launch.threads import locks, polling, starting
from torchemu.launch.threads.local import Local
from torchemu.runtime import waiting
from torchemu.runtime.process_futures import wait_beside_schedule

_PS_PER_SECOND = 10**12
_SAME = {
    "threading": ("BrokenBarrierError",),
    "queue": ("Full", "Empty", "ShutDown"),
    "concurrent.futures._base": ("Error", "CancelledError", "TimeoutError", "InvalidStateError", "BrokenExecutor"),
    "concurrent.futures.thread": ("BrokenThreadPool",),
    "multiprocessing.pool": ("MaybeEncodingError",),
}
"""Names that copies have in common with the modules, if they have them: exceptions, which others raise and catch."""

NAMES = frozenset(
    {
        "_thread",
        "_threading_local",
        "concurrent",
        "concurrent.futures",
        "concurrent.futures._base",
        "concurrent.futures.thread",
        "multiprocessing.dummy",
        "multiprocessing.dummy.connection",
        "multiprocessing.pool",
        "queue",
        "threading",
    }
)
"""The modules that programs get copies of."""

_STATELESS = frozenset({"concurrent.futures._base", "multiprocessing.dummy.connection", "queue"})
"""Modules that keep nothing between calls: one copy is enough for all ranks."""

COPY = "__torchemu_copies__"
"""The variable of a copy that holds the Copies it is one of."""


class Sources:
    """The sources of all ranks' copies in a run.

    Attributes:
        common: copies that are no rank's.
    """

    def __init__(self) -> None:
        self.common = Copies(self)
        self._codes: dict[str, types.CodeType | None] = {}
        self._stand_ins: dict[str, types.ModuleType] = {}

    def code(self, real: types.ModuleType) -> types.CodeType | None:
        """A module's; None for a folder."""
        name, spec = real.__name__, real.__spec__
        if name not in self._codes:
            assert spec is not None and spec.loader is not None
            self._codes[name] = spec.loader.get_code(name)  # type: ignore[attr-defined] # of source files
        return self._codes[name]

    def stand_in(self, name: str) -> types.ModuleType:
        """The module that copies see under this name, one of _STAND_INS."""
        if name not in self._stand_ins:
            module = self._stand_ins[name] = types.ModuleType(name)
            module.__dict__.update(vars(importlib.import_module(name)))
            _STAND_INS[name](module)
        return self._stand_ins[name]


class Copies:
    """The threads of one rank.

    Args:
        sources: those of the run.
    """

    def __init__(self, sources: Sources) -> None:
        self._sources = sources
        self._loaded: dict[str, types.ModuleType] = {}

    def find(self, name: str) -> types.ModuleType | None:
        """The copy of a module, where the rank has it."""
        return self._loaded.get(name)

    def imported(self, name: str, submodules: tuple[str, ...], from_copy: bool) -> types.ModuleType | None:
        """Returns the module for an import statement.

        Args:
            name: the whole name of the module.
            submodules: what is to be imported from it; if that is nothing, what counts is the outermost package.
            from_copy: whether the statement is in a copy.

        Returns:
            The module; None where it is not one of these.
        """
        if from_copy and name in _STAND_INS:
            return self._sources.stand_in(name)
        if name not in NAMES:
            return None
        module = self.load(name)
        for submodule in submodules:
            if f"{name}.{submodule}" in NAMES and not hasattr(module, submodule):
                self.load(f"{name}.{submodule}")
        return module if submodules else self._loaded.get(name.partition(".")[0])

    def load(self, name: str) -> types.ModuleType:
        """The copy of a module, loaded if it is not yet."""
        if name in self._loaded:
            return self._loaded[name]
        parent, _, child = name.rpartition(".")
        package = self.load(parent) if parent in NAMES else None
        if name in self._loaded:  # its package has imported it
            return self._loaded[name]
        module = self._loaded[name] = self._made(name)
        if package is not None:
            setattr(package, child, module)
        return module

    def _made(self, name: str) -> types.ModuleType:
        if name == "_thread":
            return _low_level()
        if name in _STATELESS and self is not self._sources.common:
            return self._sources.common.load(name)
        return self._executed(name)

    def _executed(self, name: str) -> types.ModuleType:
        real = importlib.import_module(name)
        spec = real.__spec__
        assert spec is not None
        module = self._loaded[name] = types.ModuleType(name, real.__doc__)
        module.__spec__, module.__loader__, module.__package__ = spec, spec.loader, spec.parent
        module.__file__ = getattr(real, "__file__", None)
        module.__dict__[COPY] = self
        if spec.submodule_search_locations is not None:
            module.__path__ = list(spec.submodule_search_locations)
        code = self._sources.code(real)
        if code is not None:
            exec(code, module.__dict__)
        for same in _SAME.get(name, ()):
            if hasattr(real, same):
                setattr(module, same, getattr(real, same))
        _CHANGES.get(name, lambda module: None)(module)
        return module


def _low_level() -> types.ModuleType:
    """_thread."""
    module = types.ModuleType("_thread")
    real = vars(importlib.import_module("_thread"))
    module.__dict__.update(real, **{name: new for name, new in _LOW_LEVEL.items() if name in real})
    module.__dict__.pop("set_name", None)  # the name of a thread of the system
    return module


_LOW_LEVEL: dict[str, Any] = {
    "LockType": locks.Lock,
    "RLock": locks.RLock,
    "_ThreadHandle": starting.ThreadHandle,
    "_count": starting.count,
    "_local": Local,
    "_get_main_thread_ident": starting.main_ident,
    "_make_thread_handle": starting.make_thread_handle,
    "_set_sentinel": starting.set_sentinel,
    "_shutdown": starting.shutdown,
    "allocate": locks.Lock,
    "allocate_lock": locks.Lock,
    "get_ident": locks.ident,
    "get_native_id": locks.ident,
    "interrupt_main": starting.interrupt_main,
    "lock": locks.Lock,
    "start_joinable_thread": starting.start_joinable_thread,
    "start_new": starting.start_new_thread,
    "start_new_thread": starting.start_new_thread,
}
"""Names of our _thread in the place of Python's, where that has them."""


def _monotonic() -> float:
    return waiting.host_time() / _PS_PER_SECOND


_STAND_INS: dict[str, Callable[[types.ModuleType], None]] = {
    "os": lambda module: delattr(module, "register_at_fork"),
    "time": lambda module: setattr(module, "monotonic", _monotonic),
    "_queue": lambda module: delattr(module, "SimpleQueue"),
}
"""Modules of which copies see a copy, and what is changed in it."""


def _of_threading(module: Any) -> None:
    module._make_invoke_excepthook = starting.quiet(module._make_invoke_excepthook)
    polling.change(module.Event, is_set=False, isSet=False)
    polling.change(module.Thread, is_alive=True)


def _of_queue(module: Any) -> None:
    module.SimpleQueue.__name__ = module.SimpleQueue.__qualname__ = "SimpleQueue"
    for kind in (module.Queue, module.SimpleQueue):
        polling.change(kind, empty=True, full=True, qsize=0)
        polling.change_failing(kind, (module.Empty, module.Full), "get", "put", "get_nowait", "put_nowait")


def _of_futures(module: Any) -> None:
    module.LOGGER = starting.Logger(module.LOGGER)
    polling.change(module.Future, done=False, running=True)
    module._create_and_install_waiters = wait_beside_schedule(module)
    _pass_for(module, "Future")


def _pass_for(module: Any, name: str) -> None:
    """Makes a class of a copy one of Python's, too, which is all that asyncio takes."""
    own, real = getattr(module, name), getattr(importlib.import_module(module.__name__), name)
    setattr(module, name, type(name, (own, real), {"__doc__": own.__doc__, "__module__": module.__name__}))


def _of_thread_pools(module: Any) -> None:
    _pass_for(module, "ThreadPoolExecutor")


def _of_pools(module: Any) -> None:
    """Threads of a ThreadPool tell each other through a pipe that there is something to do; here, through a queue."""
    wait_for_processes = module.wait

    class Notifier(module.queue.SimpleQueue):
        @property
        def _reader(self) -> Notifier:
            return self

    def wait(sentinels: list[Any], timeout: float | None = None) -> list[Any]:
        if not isinstance(sentinels[-1], Notifier):
            return wait_for_processes(sentinels, timeout=timeout)
        sentinels[-1].put(sentinels[-1].get(timeout=timeout))  # it is asked again what there is
        return sentinels

    def init(self: Any, processes: int | None = None, initializer: Any = None, initargs: Any = ()) -> None:
        context = types.SimpleNamespace(SimpleQueue=Notifier)
        module.Pool.__init__(self, processes, initializer, initargs, context=context)

    module.wait, module.ThreadPool.__init__ = wait, init


_CHANGES: dict[str, Callable[[Any], None]] = {
    "threading": _of_threading,
    "queue": _of_queue,
    "concurrent.futures._base": _of_futures,
    "concurrent.futures.thread": _of_thread_pools,
    "multiprocessing.pool": _of_pools,
}
"""Changes of copies, by module."""
