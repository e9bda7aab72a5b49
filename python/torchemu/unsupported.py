"""Names that PyTorch has and torchemu has not. They are there, so that imports work; their use says what is missing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn


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
