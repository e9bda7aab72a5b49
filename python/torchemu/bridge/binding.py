"""The Go core's functions, each raising the Python exception that the core names in its error."""

from __future__ import annotations

import builtins
import functools
import os
import types
from collections.abc import Callable
from typing import Any

from torchemu import errors
from torchemu._core import _pybind, pybind

SEPARATOR = "\x1f"
"""Between an exception's name, its message, and what else there is; see pybind/errors.go."""


Describe = Callable[[str, str], str]
"""Makes the text of an exception from the core's text and from the details that the core gives beside it."""

_described: dict[str, Describe] = {}


def describe(name: str, by: Describe) -> None:
    """Makes `by` the author of the texts of exceptions of a class that have details; otherwise details are left out."""
    _described[name] = by


def _translated(error: RuntimeError) -> BaseException:
    name, separator, message = str(error).partition(SEPARATOR)
    if not separator:
        return error
    kind: type[BaseException] = getattr(errors, name, getattr(builtins, name, RuntimeError))
    text, _, details = message.partition(SEPARATOR)
    return kind(_described[name](text, details) if details and name in _described else text)


def _bind(name: str) -> Callable[..., Any]:
    function = getattr(_pybind, f"pybind_{name}")  # what its namesake in pybind does nothing but call

    @functools.wraps(getattr(pybind, name))
    def call(*args: Any) -> Any:
        try:
            return function(*args)
        except RuntimeError as error:
            failure = _translated(error)
        except OverflowError:
            failure = ValueError(f"a number is out of range: {args} must fit 64 bits")
        raise failure  # outside of the handlers: its context is what the program was handling, if anything

    return call


def _refuse(*_: Any) -> Any:
    raise RuntimeError(
        "torchemu does not work in a forked child: the Go runtime does not survive fork. "
        "Start the child with the multiprocessing start method 'spawn' or 'forkserver'."
    )


def _forked() -> None:
    go.forked = True
    for name in EXPORTED:
        setattr(go, name, _refuse)
    go.Release = lambda _: False  # tensors that the child inherited go away quietly


EXPORTED = tuple(sorted(name for name in vars(pybind) if name[0].isupper() and callable(getattr(pybind, name))))
"""The names of the core's functions."""

go: Any = types.SimpleNamespace(**{name: _bind(name) for name in EXPORTED}, forked=False)
"""The core's functions, under the names and with the documentation of the Go package pybind."""

os.register_at_fork(after_in_child=_forked)
