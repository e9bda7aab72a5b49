"""What torch.load with weights_only may call beside what tensors and containers need: what a program allows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torchemu.frontends.numpy.front_end import FRONT_END
from torchemu.runtime.rank_local import RankLocal

Allowed = Any | tuple[Any, str]
"""A class or a function; with a name, where files call it otherwise."""

_allowed: RankLocal[list[Allowed]] = RankLocal(list)


def add_safe_globals(safe_globals: Sequence[Allowed]) -> None:
    """Allows files to call these from now on.

    Args:
        safe_globals: classes and functions; or pairs, of one and the name that files have for it, module included.
    """
    _allowed.get().extend(safe_globals)


def get_safe_globals() -> list[Allowed]:
    """What has been allowed."""
    return list(_allowed.get())


def clear_safe_globals() -> None:
    """Allows nothing any more."""
    _allowed.set([])


class safe_globals:  # noqa: N801 (PyTorch's name)
    """A context manager in which files may call these, too.

    Args:
        safe_globals: as for add_safe_globals.
    """

    def __init__(self, safe_globals: Sequence[Allowed]) -> None:
        self._added = safe_globals

    def __enter__(self) -> None:
        self._before = get_safe_globals()
        add_safe_globals(self._added)

    def __exit__(self, *_: Any) -> None:
        _allowed.set(self._before)


def found(module: str, name: str) -> Any:
    """The class or function of that name that has been allowed; None if there is none."""
    for entry in _allowed.get():
        value, called = entry if isinstance(entry, tuple) else (entry, f"{entry.__module__}.{entry.__qualname__}")
        if _within(called) == _within(f"{module}.{name}"):
            return value
    return None


def _within(name: str) -> str:
    """A name of torchemu's by torchemu's own module, whichever it goes by."""
    module, _, title = name.rpartition(".")
    return f"{FRONT_END.module(module) or module}.{title}"
