"""torch.compiler: what programs say to the compiler, which there is not. Functions and modules run as they are."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

__all__ = [
    "allow_in_graph",
    "compile",
    "cudagraph_mark_step_begin",
    "disable",
    "is_compiling",
    "is_dynamo_compiling",
    "is_exporting",
    "reset",
    "set_stance",
]


def compile(model: Any = None, *, disable: bool = False, **options: Any) -> Any:  # noqa: A001 (PyTorch's name)
    """A function as it is; a module within one that has its attributes; or a decorator.

    Args:
        model: the function or module; None: a decorator is returned.
        disable: leave the module as it is, too.
        options: mean nothing here.
    """
    from torchemu.frontends.numpy._dynamo.eval_frame import OptimizedModule
    from torchemu.frontends.numpy.nn import Module

    if model is None:
        return lambda function: compile(function, disable=disable)
    return OptimizedModule(model) if isinstance(model, Module) and not disable else model


def disable(fn: Any = None, recursive: bool = True, *, reason: str | None = None) -> Any:
    """The function as it is, or a decorator that leaves it so."""
    return (lambda function: function) if fn is None else fn


def allow_in_graph(fn: Callable[..., Any]) -> Callable[..., Any]:
    """The function as it is."""
    return fn


def is_compiling() -> bool:
    """False."""
    return False


is_dynamo_compiling = is_exporting = is_compiling


def reset() -> None:
    """Does nothing: nothing is kept."""


def cudagraph_mark_step_begin() -> None:
    """Does nothing: there are no graphs."""


class _Stance(contextlib.ContextDecorator):
    """A block and a decorator that change nothing."""

    def __enter__(self) -> None:
        pass

    def __exit__(self, *_: object) -> None:
        pass


def set_stance(*args: Any, **kwargs: Any) -> Any:
    """Changes nothing; may be used in a with block or as a decorator."""
    return _Stance()
