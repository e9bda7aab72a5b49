"""The Go core's functions, each raising the Python exception that the core names in its error."""

from __future__ import annotations

import builtins
import functools
import json
import os
import types
from collections.abc import Callable
from typing import Any

from torchemu import errors
from torchemu._core import _pybind, pybind
from torchemu.bridge.ints import Ints

_ROOM = 64
"""For how many integers there is room at first in what the core fills in."""


Describe = Callable[[str, str], str]
"""Makes the text of an exception from the core's text and from the details that the core gives beside it."""

_detailed: dict[str, Callable[[str, str], BaseException]] = {"DeadlockError": errors.DeadlockError}
"""Makes an exception of the core's text and details, by its name; otherwise details are left out."""


_made: dict[str, Callable[[str], BaseException]] = {}
"""Makes an exception of the core's text, by the core's name of it, where that is no class of errors."""


def make(name: str, by: Callable[[str], BaseException]) -> None:
    """Makes `by` the maker of the exceptions that the core gives a name."""
    _made[name] = by


def describe(name: str, by: Describe) -> None:
    """Makes `by` the author of the texts of exceptions of a class that have details."""
    kind = getattr(errors, name)
    _detailed[name] = lambda text, details: kind(by(text, details))


def _translated(error: RuntimeError) -> BaseException:
    try:
        failure = json.loads(str(error))
    except ValueError:
        return error  # the binding's own
    name = failure["exception"]
    text, details = failure["message"], failure.get("details")
    if name in _made:
        return _made[name](text)
    kind: type[BaseException] = getattr(errors, name, getattr(builtins, name, RuntimeError))
    made = _detailed[name](text, details) if details and name in _detailed else kind(text)
    if isinstance(made, errors.DeadlockError):
        made.waits = failure.get("waits", ())
    return made


def _bind(name: str) -> Callable[..., Any]:
    """A function of the core. A list of integers, which crosses as its address and its length, is one argument: Ints,
    or what Ints can be made of. A list that the core fills in is the result."""
    function = getattr(_pybind, f"pybind_{name}")  # what its namesake in pybind does nothing but call
    parameters = _parameters(name)
    if _fills(parameters):
        function = _filling(function)
    for place in _lists(parameters):
        function = _listing(function, place)

    @functools.wraps(getattr(pybind, name))
    def call(*args: Any) -> Any:
        try:
            return function(*args)
        except RuntimeError as error:
            failure = _translated(error)
        except OverflowError:
            failure = ValueError(f"a number is out of range: {args} must fit 64 bits")
        try:
            raise failure  # outside of the handlers: its context is what the program was handling, if anything
        finally:
            del failure  # its traceback has this frame, which would keep it, and what all callers have

    return call


def _parameters(name: str) -> list[tuple[str, str]]:
    """The types and names of a function's parameters in Go: long, int, float, bool, str."""
    listed = (getattr(pybind, name).__doc__ or "").partition("(")[2].partition(")")[0]
    return [(kind, own) for kind, own in (parameter.split() for parameter in listed.split(", ") if parameter)]


def arguments(name: str) -> list[tuple[str, str]]:
    """The types and names of what a function takes here: those of its parameters in Go, and "list"."""
    parameters = _parameters(name)
    if _fills(parameters):
        del parameters[-2:]
    for place in _lists(parameters):
        parameters[place : place + 2] = [("list", parameters[place + 1][1])]
    return parameters


def _fills(parameters: list[tuple[str, str]]) -> bool:
    """Says whether the function fills a list in."""
    return [own for _, own in parameters[-2:]] == ["to", "room"]


def _lists(parameters: list[tuple[str, str]]) -> list[int]:
    """The places of lists, each an address and a length; the last one first: what comes before keeps its place."""
    names = [own for _, own in parameters]
    return [place for place in reversed(range(len(names) - 1)) if names[place] == names[place + 1] + "At"]


def _listing(function: Callable[..., Any], place: int) -> Callable[..., Any]:
    """A function that takes a list where the given one takes an address and a length."""

    def call(*args: Any) -> Any:
        ints = args[place]
        if type(ints) is not Ints and not isinstance(ints, Ints):
            ints = Ints(ints)
        return function(*args[:place], ints.address, ints.count, *args[place + 1 :])

    return call


def _filling(function: Callable[..., Any]) -> Callable[..., list[int]]:
    """A function that returns the list which the given one fills in where it is told that there is room."""

    def call(*args: Any) -> list[int]:
        room = Ints.room(_ROOM)
        count = function(*args, room.address, room.count)
        if count > room.count:
            room = Ints.room(count)
            function(*args, room.address, room.count)
        return room.first(count)

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


LIBRARY: str = _pybind.__file__
"""The file that the core is in, with functions in C."""

EXPORTED = tuple(sorted(name for name in vars(pybind) if name[0].isupper() and callable(getattr(pybind, name))))
"""The names of the core's functions."""

go: Any = types.SimpleNamespace(**{name: _bind(name) for name in EXPORTED}, forked=False)
"""The core's functions, under the names and with the documentation of the Go package pybind."""

os.register_at_fork(after_in_child=_forked)
