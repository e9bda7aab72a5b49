"""Futures of works. PyTorch's code in C++ waits for futures without giving others their turn, and so do its Python
methods: here whoever waits for a future first brings about what this rank has futures of."""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Iterator
from typing import Any

import torch

from torchemu import runtime
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


def _value(work: Any, result: Any) -> Any:
    return work.result() if result is _OUTPUTS else result


def _resolve_for_cpp() -> None:
    """Ends a backward pass, after which C++ would take the error that Python keeps in a future for its result."""
    error = resolve()
    if error is not None:
        raise error


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


def wait(self: Any) -> Any:
    """Its result; raises its error."""
    if not _is_done(self) and runtime.running() is not None:
        resolve(self)
    return _wait(self)
