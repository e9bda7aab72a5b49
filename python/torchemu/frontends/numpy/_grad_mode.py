"""Switches for recording gradients: torch.no_grad and its kin, as context managers and as decorators."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator
from typing import Any, Self

from torchemu.frontends.numpy import _settings


class _Mode:
    """A context manager that is also a decorator, of functions and of generators, as ``@mode`` or ``@mode()``."""

    def __new__(cls, function: Any = None) -> Any:
        mode = super().__new__(cls)
        if callable(function):
            mode.__init__()  # type: ignore[misc]
            return mode(function)
        return mode

    def __init__(self, *_: Any) -> None:
        self._before: list[tuple[bool, bool]] = []

    def _modes(self) -> tuple[bool, bool]:
        """Reports whether gradients are recorded, and whether in inference mode, while this one is on."""
        raise NotImplementedError

    def __enter__(self) -> Self:
        settings = _settings.current()
        self._before.append((settings.gradients, settings.inference))
        settings.gradients, settings.inference = self._modes()
        return self

    def __exit__(self, *_: object) -> None:
        settings = _settings.current()
        settings.gradients, settings.inference = self._before.pop()

    def _another(self) -> Self:
        """Each call of a decorated function has one of its own: ranks call it in turns."""
        return type(self)()

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        if inspect.isgeneratorfunction(function):

            @functools.wraps(function)
            def generate(*args: Any, **kwargs: Any) -> Iterator[Any]:
                return _stepped(function(*args, **kwargs), self._another)

            return generate

        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            with self._another():
                return function(*args, **kwargs)

        return call


def _stepped(steps: Any, mode: Callable[[], Any]) -> Any:
    """A generator each of whose steps runs in the mode, and what is between them outside of it."""
    sent: Any = None
    while True:
        with mode():
            try:
                value = steps.send(sent)
            except StopIteration as end:
                return end.value
        try:
            sent = yield value
        except GeneratorExit:
            steps.close()
            raise


class no_grad(_Mode):  # noqa: N801 (PyTorch's names)
    """Operations are not recorded."""

    def _modes(self) -> tuple[bool, bool]:
        return False, _settings.current().inference


class enable_grad(_Mode):  # noqa: N801
    """Operations are recorded."""

    def _modes(self) -> tuple[bool, bool]:
        return True, _settings.current().inference


class _Chosen(_Mode):
    """One that takes a bool."""

    def __new__(cls, mode: Any = True) -> Any:
        return super().__new__(cls, None if isinstance(mode, bool) else mode)

    def __init__(self, mode: bool = True) -> None:
        super().__init__()
        self._mode = mode

    def _another(self) -> Self:
        return type(self)(self._mode)


class inference_mode(_Chosen):  # noqa: N801
    """Operations are not recorded, and cannot be later."""

    def _modes(self) -> tuple[bool, bool]:
        settings = _settings.current()
        return (False, True) if self._mode else (settings.gradients, False)


class set_grad_enabled(_Chosen):  # noqa: N801
    """Operations are recorded or not, from the call on; as a context manager until its end."""

    def __init__(self, mode: bool) -> None:
        super().__init__(mode)
        settings = _settings.current()
        self._before.append((settings.gradients, settings.inference))
        settings.gradients = mode

    def _modes(self) -> tuple[bool, bool]:
        return self._mode, _settings.current().inference

    def __enter__(self) -> Self:
        return self

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        self.__exit__()  # as a decorator it says nothing about what comes before the function's call
        return super().__call__(function)


def is_grad_enabled() -> bool:
    """Reports whether operations are recorded."""
    return _settings.current().gradients


def is_inference_mode_enabled() -> bool:
    """Reports whether in inference_mode."""
    return _settings.current().inference
