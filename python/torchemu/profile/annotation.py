"""record_function: the program's own names for what it does."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, TypeVar

from torchemu import runtime
from torchemu.bridge.binding import go

F = TypeVar("F", bound=Callable[..., Any])


class record_function:  # noqa: N801
    """Gives what is in a with block, or in a decorated function, a name in profiles and traces.

    Args:
        name: the name.
        args: shown with it.
    """

    def __init__(self, name: str, args: str | None = None) -> None:
        self.name, self.args = name, args
        self._from: int | None = None  # when it began on the host, in picoseconds, if anybody records that

    def __enter__(self) -> record_function:
        context = runtime.current()
        if context.world.recordings:
            context.issue()
            self._from = go.HostTime(context.world.handle, context.rank)
        return self

    def __exit__(self, *_: Any) -> None:
        if self._from is None:
            return
        context, began, self._from = runtime.current(), self._from, None
        name = self.name if self.args is None else f"{self.name}({self.args})"
        go.Annotate(context.world.handle, context.rank, name, began)

    def __call__(self, function: F) -> F:
        """Decorates a function, a coroutine function or a generator function."""

        def again() -> record_function:
            return type(self)(self.name, self.args)

        if inspect.iscoroutinefunction(function):

            @functools.wraps(function)
            async def of_coroutine(*args: Any, **kwargs: Any) -> Any:
                with again():
                    return await function(*args, **kwargs)

            return of_coroutine  # type: ignore[return-value]

        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            with again():
                return function(*args, **kwargs)

        return call  # type: ignore[return-value]
