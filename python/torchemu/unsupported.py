"""What PyTorch has and torchemu has not. The name is there, so that imports work; its use says what is missing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn


class UnsupportedNameError(NotImplementedError, AttributeError):
    """Of a name that modules do not have: for who asks whether they do, as for any other."""


def unsupported(name: str, instead: str) -> NotImplementedError:
    """The error that a use of it raises.

    Args:
        name: the full name, as PyTorch's users write it.
        instead: why not, or what to use.
    """
    return NotImplementedError(f"{name} is not supported: {instead}")


def unsupported_function(name: str, instead: str) -> Callable[..., NoReturn]:
    """A function that says so when it is called."""

    def function(*args: Any, **kwargs: Any) -> NoReturn:
        raise unsupported(name, instead)

    function.__name__ = function.__qualname__ = name.rpartition(".")[2]
    function.__doc__ = f"Not supported: {instead}"
    return function


def unsupported_class(name: str, instead: str) -> type:
    """A class that says so when it is to be instantiated. Nothing is an instance of it."""

    def new(cls: type, *args: Any, **kwargs: Any) -> NoReturn:
        raise unsupported(name, instead)

    module, _, title = name.rpartition(".")
    return type(title, (), {"__new__": new, "__doc__": f"Not supported: {instead}", "__module__": module})


def unsupported_attributes(name: str, instead: str) -> Callable[[str], NoReturn]:
    """The ``__getattr__`` of a module that says so when something of it is used."""

    def getattr_of_module(attribute: str) -> NoReturn:
        if attribute.startswith("__"):
            raise AttributeError(attribute)
        raise unsupported(f"{name}.{attribute}", instead)

    return getattr_of_module


def unsupported_names(module: str, names: str, instead: str) -> Callable[[str], Any]:
    """The ``__getattr__`` of a module of which PyTorch has more: a class for a name in capitals, else a function, that
    say so when they are used.

    Args:
        module: what PyTorch's users call it.
        names: what is missing, separated by spaces.
        instead: why, or what to use.
    """
    missing = frozenset(names.split())

    def getattr_of_module(attribute: str) -> Any:
        if attribute not in missing:
            raise AttributeError(f"module {module!r} has no attribute {attribute!r}")
        make = unsupported_class if attribute[0].isupper() else unsupported_function
        return make(f"{module}.{attribute}", instead)

    return getattr_of_module
