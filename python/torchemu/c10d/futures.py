"""Futures: values that are yet to come, as torch.futures has them.

A value made of tensors is there as soon as its operation has been issued: what is yet to come is the simulated time at
which it is on the device. So a callback runs at once, on a stream of its own that waits for that time, and the host
that waits for a future goes on: its current stream waits. PyTorch does the same for operations on devices.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

from torchemu import runtime
from torchemu.bridge.binding import go
from torchemu.bridge.handles import Handle
from torchemu.runtime import buffer
from torchemu.runtime.waiting import Looks

__all__ = ["Future", "collect_all", "wait_all"]

T = TypeVar("T")
S = TypeVar("S")


class Future(Generic[T]):
    """A value that is yet to come.

    Args:
        devices: means nothing here.
    """

    def __init__(self, *, devices: Any = None) -> None:
        self._complete = False
        self._result: Any = None
        self._error: Exception | None = None
        self._event: Handle | None = None  # what streams wait for
        self._callbacks: list[Callable[[Future[T]], Any]] = []
        self._signal: Handle | None = None  # what hosts wait for
        self._waited, self._looks = False, Looks("done()")
        self._on_wait: Callable[[], None] | None = None  # what hears that somebody knows that the value is there

    def done(self) -> bool:
        """Returns whether there is a value, and it was waited for, or the device has it by the present simulated
        time. Asking in vain takes time, as with a Work: a program may ask in a loop."""
        done = self._complete and (self._waited or self._event is None or self._looks.at(self._event.number))
        if done:
            self._heard()
        return done

    def wait(self) -> T:
        """The value, or its error. Blocks the host until there is one, and then the current stream until it is on the
        device."""
        if not self._complete:
            self._await_completion()
        if self._event is not None:
            go.StreamWait(runtime.current().stream, self._event.number)
        self._waited = True
        self._heard()
        return self.value()

    def _heard(self) -> None:
        if self._on_wait is not None:
            self._on_wait()

    def value(self) -> T:
        """The value, or its error.

        Raises:
            RuntimeError: there is none yet.
        """
        if not self._complete:
            raise RuntimeError("the Future has no value yet: wait for it first")
        if self._error is not None:
            raise self._error
        return self._result

    def then(self, callback: Callable[[Future[T]], S]) -> Future[S]:
        """A future of what the callback will return, which is called with this future once it has a value. What the
        callback raises is the cause of a RuntimeError, which is the future's.

        Raises:
            TypeError: the callback cannot be called.
        """
        if not callable(callback):
            raise TypeError(f"then(): incompatible function arguments: {callback!r} is not a function")
        after: Future[S] = Future()
        self._heard()  # the callback runs at once, where the value is there
        self._when_complete(lambda future: after._calculate(lambda: _called(callback, future), [future]))
        return after

    def add_done_callback(self, callback: Callable[[Future[T]], None]) -> None:
        """Calls the callback with this future once it has a value. What it returns or raises is lost."""
        self.then(callback)

    def set_result(self, result: T) -> None:
        """Gives the future its value.

        Raises:
            RuntimeError: it has one.
        """
        self._finish(result, None)

    def set_exception(self, error: Exception) -> None:
        """Gives the future an error, which wait() and value() raise.

        Raises:
            AssertionError: not an exception.
            RuntimeError: it has a value.
        """
        if not isinstance(error, Exception):
            raise AssertionError(f"{error} is of type {type(error)}, not an Exception.")
        self._finish(None, error)

    def _when_complete(self, call: Callable[[Future[T]], Any]) -> None:
        if self._complete:
            call(self)
        else:
            self._callbacks.append(call)

    def _finish(self, result: Any, error: Exception | None) -> None:
        if self._complete:
            raise RuntimeError(
                "Attempting to mark a completed Future as complete again. "
                "Note that a Future can only be marked completed once."
            )
        self._complete, self._result, self._error = True, result, error
        if self._signal is not None:
            go.Fire(self._signal.number, runtime.current().rank)
        callbacks, self._callbacks = self._callbacks, []
        for call in callbacks:
            call(self)

    def _calculate(self, calculate: Callable[[], T], after: list[Future[Any]]) -> None:
        """Finishes with what a function returns, whose operations start when some futures are on the device."""
        events = [future._event.number for future in after if future._event is not None]
        if not events:
            self._finish(*_outcome(calculate))
            return
        with buffer.chosen().new_stream() as stream:
            for event in events:
                go.StreamWait(stream, event)
            result, error = _outcome(calculate)
            self._event = Handle(go.StreamRecord(stream))
        self._finish(result, error)

    def _await_completion(self) -> None:
        context = runtime.current()
        if self._signal is None:
            text = f"a Future at {runtime.call_site()}, which nobody has given a value"
            self._signal = Handle(go.NewSignal(context.world.handle, text))
        context.wait(self._signal.number)


def _called(callback: Callable[[Future[T]], S], future: Future[T]) -> S:
    try:
        return callback(future)
    except Exception as error:
        what = f"{type(error).__name__}: {error}"
        raise RuntimeError(f"Got the following error when running the callback: {what}") from error


def _outcome(calculate: Callable[[], T]) -> tuple[T | None, Exception | None]:
    try:
        return calculate(), None
    except Exception as error:
        return None, error


def issued(result: T, event: Handle, on_wait: Callable[[], None] | None = None) -> Future[T]:
    """The future of an operation that has been issued.

    Args:
        result: what the future is of.
        event: the operation's end.
        on_wait: is called when somebody has waited for it.
    """
    future: Future[T] = Future()
    future._event, future._on_wait = event, on_wait
    future.set_result(result)
    return future


def collect_all(futures: list[Future[Any]]) -> Future[list[Future[Any]]]:
    """A future of the list, which comes once all of them have values; it fails as the first of them that fails."""
    together: Future[list[Future[Any]]] = Future()
    missing = len(futures)

    def heard() -> None:
        for future in futures:
            future._heard()

    together._on_wait = heard

    def one(_: Future[Any]) -> None:
        nonlocal missing
        missing -= 1
        if missing == 0:
            together._calculate(lambda: _sound(futures), futures)

    for future in futures:
        future._when_complete(one)
    if not futures:
        together.set_result(futures)
    return together


def _sound(futures: list[Future[Any]]) -> list[Future[Any]]:
    """The list, if none has an error."""
    for future in futures:
        future.value()
    return futures


def wait_all(futures: list[Future[Any]]) -> list[Any]:
    """The values of all of them."""
    return [future.wait() for future in futures]
