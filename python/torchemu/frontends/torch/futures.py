"""Futures of works. PyTorch's code in C++ waits for futures without giving others their turn, and so do its Python
methods: here whoever waits for a future first brings about what this rank has futures of."""

from __future__ import annotations

import contextlib
import functools
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch

from torchemu import runtime
from torchemu.bridge.binding import go
from torchemu.runtime import waiting
from torchemu.runtime.rank_local import RankLocal
from torchemu.runtime.waiting import Looks

_unresolved: RankLocal[deque[tuple[torch.futures.Future, Any, Any]]] = RankLocal(deque)

_at_once: RankLocal[list[bool]] = RankLocal(list)  # holds something while C++ waits right after it has issued works

_OUTPUTS = object()


@contextlib.contextmanager
def resolved_at_once() -> Iterator[None]:
    """Gives the futures that the running rank asks for meanwhile their results before it goes on."""
    at_once = _at_once.get()
    at_once.append(True)
    try:
        yield
    finally:
        at_once.pop()


def of_work(work: Any, result: Any = _OUTPUTS) -> torch.futures.Future:
    """A future that has its result when a work's data is in place and the stream, or the host, waits for it.

    Args:
        work: the work.
        result: of the future; what the work writes, if none is given.
    """
    future: torch.futures.Future = torch.futures.Future()
    if getattr(work, "has_waited", False):  # whoever asks in C++ may wait at once
        future.set_result(_value(work, result))
        return future
    _unresolved.get().append((future, work, result))
    if _at_once.get():
        resolve(future)
    elif torch._C._current_graph_task_id() != -1:  # whoever waits in C++ does so when the backward pass ends
        torch.autograd.Variable._execution_engine.queue_callback(_resolve_for_cpp)
    return future


def of_outcome(work: Any) -> torch.futures.Future:
    """A future of how a work ends, which it has when that is known, and not before: see AhbmWork.outcome."""
    future: torch.futures.Future = torch.futures.Future()
    _unresolved.get().append((future, _Outcome(work), _OUTPUTS))
    return future


class _Outcome:
    """A work whose result is how it ends.

    Args:
        work: the work.
    """

    def __init__(self, work: Any) -> None:
        self._work, self._found = work, None

    def wait(self) -> None:
        """Waits for the end."""
        self._found = self._work.outcome()

    def is_settled(self) -> bool:
        """Says whether the work has ended."""
        return bool(go.IsDone(self._work.handle))

    def result(self) -> int | None:
        """Returns what wait has found."""
        return self._found


def _value(work: Any, result: Any) -> Any:
    return work.result() if result is _OUTPUTS else result


def _resolve_for_cpp() -> None:
    """Ends a backward pass, after which C++ would take the error that Python keeps in a future for its result."""
    error = resolve()
    try:
        if error is not None:
            raise error
    finally:
        del error  # its traceback has this frame


def resolve(until: Any = None) -> Exception | None:
    """Gives the running rank's futures their results, in the order of their works; until one has its. Returns the first
    error that one has got."""
    left, first = _unresolved.get(), None
    own = next((entry for entry in left if entry[0] is until), None)
    if own is not None:  # functions of other futures, which may be of the same kind, do not run within this one's
        left.remove(own)
        return _resolve_one(*own)
    while left and not (until is not None and _is_done(until)):
        error = _resolve_one(*left.popleft())
        first = first or error
    return first


def _resolve_one(future: torch.futures.Future, work: Any, result: Any) -> Exception | None:
    """Gives a future its result, or the error of its work, which is returned."""
    try:
        work.wait()
    except Exception as error:
        future.set_exception(error)
        return error
    future.set_result(_value(work, result))
    return None


def _resolve_settled() -> None:
    """Gives results to the futures of works whose data is in place."""
    left = _unresolved.get()
    while left and left[0][1].is_settled():
        future, work, result = left.popleft()
        work.wait()
        future.set_result(_value(work, result))


_is_done = torch._C.Future.done
_wait = torch._C.Future.wait


def done(self: Any) -> bool:
    """Says whether the future has a result, or an error."""
    if not _is_done(self) and runtime.running() is not None:
        _resolve_settled()
        if not _is_done(self):
            _look(self)
            _resolve_settled()
    return bool(_is_done(self))


def _look(future: Any) -> None:
    """Lets the time of a look in vain pass, in which others run."""
    looks = getattr(future, "_looks", None) or Looks()
    if hasattr(future, "__dict__"):
        future._looks = looks
    waiting.look(looks.longer(), "done()")


def describe(future: Any, what: str, needs: Sequence[int]) -> None:
    """Notes what a future is of, for the report of a deadlock, and the ranks that can give it a result."""
    future._torchemu_of = what, needs


def collecting(collect: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Returns the function that makes one future of several: where these are of RPCs, the first error is its error, for
    which it waits for no other."""

    def collect_all(several: Any) -> Any:
        if not any(hasattr(future, "_torchemu_of") for future in several):
            return collect(several)
        whole: torch.futures.Future[Any] = torch.futures.Future()
        left = set(range(len(several)))

        def note(number: int, future: Any) -> None:
            left.remove(number)
            if _is_done(whole):
                return
            error = _error_of(future)
            if error is not None:
                whole.set_exception(error)
            elif not left:
                whole.set_result([*several])

        for number, future in enumerate(several):
            future.add_done_callback(functools.partial(note, number))
        return whole

    return collect_all


def _error_of(future: Any) -> Exception | None:
    """Returns the error of a future that is done; None where it has a result."""
    try:
        future.value()
    except Exception as error:
        return error
    return None


def wait(self: Any) -> Any:
    """Its result; raises its error."""
    if not _is_done(self) and runtime.running() is not None:
        resolve(self)
        if not _is_done(self):
            _wait_for_others(self)
    return _wait(self)


def _wait_for_others(future: Any) -> None:
    """Lets others run until one of them, a thread of the rank, has given the future a result."""
    what, needs = getattr(future, "_torchemu_of", ("a Future", ()))
    line = waiting.Line()
    future.add_done_callback(lambda _: line.call_all())
    line.wait(what, needs=needs)
