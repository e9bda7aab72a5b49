"""Start methods of processes. All ways are one here, for ranks are tasks, but for what they know at first."""

from __future__ import annotations

import importlib
import multiprocessing.context
from collections.abc import Iterable
from typing import Any

from torchemu import runtime
from torchemu.runtime.rank_local import RankLocal

_METHODS = ("fork", "spawn", "forkserver")
_DEFAULT = "fork"
_STRATEGIES = ("file_descriptor", "file_system")
_chosen: RankLocal[str | None] = RankLocal(lambda: None)
_strategy = RankLocal(lambda: _STRATEGIES[0])


class StartContext:
    """All of torch.multiprocessing, for one way of starting processes."""

    def __init__(self, method: str) -> None:
        self._method = method

    @property  # type: ignore[misc]  # object's can be set
    def __class__(self) -> type:
        """Python's type of contexts, for those who look at what they are given: PyTorch's DataLoader does."""
        return multiprocessing.context.BaseContext

    def __getattr__(self, name: str) -> Any:
        if name == "Process":
            return importlib.import_module(f"{__package__}._process").PROCESSES[self._method]
        if name == "Pool":
            return importlib.import_module(f"{__package__}._pool").Pools(self._method)
        return getattr(importlib.import_module(__package__), name)

    def get_start_method(self, allow_none: bool = False) -> str:
        """The way."""
        return self._method

    def get_context(self, method: str | None = None) -> StartContext:
        """Returns the context of another start method."""
        return get_context(method or self._method)


def get_context(method: str | None = None) -> StartContext:
    """The names of this module, for a way of starting processes."""
    return StartContext(_checked(method or _chosen.get() or _DEFAULT))


def get_start_method(allow_none: bool = False) -> str | None:
    """Returns the method that was set; "fork", Linux's, where nothing was."""
    return _chosen.get() or (None if allow_none else _DEFAULT)


def set_start_method(method: str | None, force: bool = False) -> None:
    """Remembers how the program wants to start processes.

    Raises:
        RuntimeError: it was set before.
    """
    if _chosen.get() is not None and not force:
        raise RuntimeError("context has already been set")
    _chosen.set(None if method is None else _checked(method))


def hand_down(contexts: Iterable[runtime.Context]) -> None:
    """Lets processes that the program starts know what it has set."""
    for context in contexts:
        _chosen.set_in(context, _chosen.get())


def get_all_start_methods() -> list[str]:
    """The names of all ways."""
    return list(_METHODS)


def _checked(method: str) -> str:
    if method not in _METHODS:
        raise ValueError(f"cannot find context for {method!r}")
    return method


def get_sharing_strategy() -> str:
    """Returns the strategy that was set; tensors that go through a queue are shared in any case."""
    return _strategy.get()


def set_sharing_strategy(new_strategy: str) -> None:
    """Remembers how the program wants to share tensors."""
    if new_strategy not in _STRATEGIES:
        raise AssertionError(f"invalid sharing strategy {new_strategy!r}, expected one of {', '.join(_STRATEGIES)}")
    _strategy.set(new_strategy)


def get_all_sharing_strategies() -> set[str]:
    """The names of all."""
    return set(_STRATEGIES)


def does_nothing(*args: Any) -> None:
    """Does nothing: there are no processes to prepare."""
