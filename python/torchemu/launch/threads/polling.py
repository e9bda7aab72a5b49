"""Questions that a program may ask in a loop, until another thread has done something. To ask in vain takes time."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from torchemu.launch.threads.locks import is_foreign
from torchemu.launch.threads.waits import called_by_program, described
from torchemu.runtime import threads
from torchemu.runtime.waiting import host_time

_LOOKS = "_torchemu_looks"  # the attribute of what is asked in vain


def change(kind: type, **vain: Any) -> None:
    """Makes methods of a class take time when they answer so. What is not there is left out."""
    for name, answer in vain.items():
        if hasattr(kind, name):
            setattr(kind, name, _asked(getattr(kind, name), answer))


def _asked(method: Callable[..., Any], vain: Any) -> Callable[..., Any]:
    @functools.wraps(method)
    def ask(self: Any, *args: Any, **kwargs: Any) -> Any:
        answer = method(self, *args, **kwargs)
        _passes(self, method, answer == vain)
        return answer

    return ask


def change_failing(kind: type, errors: tuple[type[Exception], ...], *names: str) -> None:
    """Makes methods of a class take time when they raise these errors."""
    for name in names:
        if hasattr(kind, name):
            setattr(kind, name, _tried(getattr(kind, name), errors))


def _tried(method: Callable[..., Any], errors: tuple[type[Exception], ...]) -> Callable[..., Any]:
    @functools.wraps(method)
    def attempt(self: Any, *args: Any, **kwargs: Any) -> Any:
        foreign = is_foreign()
        begun = 0 if foreign else host_time()
        try:
            answer = method(self, *args, **kwargs)
        except errors:
            if not foreign and host_time() == begun:  # it has not waited itself
                _passes(self, method, True)
            raise
        vars(self).pop(_LOOKS, None)
        return answer

    return attempt


def _passes(asked: Any, method: Callable[..., Any], in_vain: bool) -> None:
    """Only the program's own questions: Python's library asks for its own reasons, and holds locks."""
    if not called_by_program() or is_foreign():
        return
    if not in_vain:
        vars(asked).pop(_LOOKS, None)
        return
    looks = vars(asked).setdefault(_LOOKS, threads.Looks())
    looks.in_vain(described(f"{method.__qualname__}()"))
