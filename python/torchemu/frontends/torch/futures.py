"""Futures of works. PyTorch's code in C++ waits for futures without giving others their turn, and so do its Python
methods: here whoever waits for a future first brings about what this rank has futures of."""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Iterator
from typing import Any

import torch

from torchemu import runtime
from torchemu.runtime.rank_local import RankLocal

_unresolved: RankLocal[deque[tuple[torch.futures.Future, Any, Any]]] = RankLocal(deque)

_at_once: RankLocal[list[bool]] = RankLocal(list)  # holds something while C++ waits right after it has issued works

_OUTPUTS = object()


@contextlib.contextmanager
def resolved_at_once() -> Iterator[None]:
    """Gives the futures that the running rank asks for meanwhile their results before it goes on."""
    waiting = _at_once.get()
    waiting.append(True)
    try:
        yield
    finally:
        waiting.pop()


def of_work(work: Any, result: Any = _OUTPUTS) -> torch.futures.Future:
    """A future that has its result when a work's data is in place and the stream, or the host, waits for it.

    Args:
        work: the work.
        result: of the future; what the work writes, if none is given.
    """
    future: torch.futures.Future = torch.futures.Future()
    value = work.outputs if result is _OUTPUTS else result
    if getattr(work, "has_waited", False):  # whoever asks in C++ may wait at once
        future.set_result(value)
        return future
    waiting = _unresolved.get()
    waiting.append((future, work, value))
    if _at_once.get():
        resolve(future)
    elif torch._C._current_graph_task_id() != -1:  # whoever waits in C++ does so when the backward pass ends
        torch.autograd.Variable._execution_engine.queue_callback(_resolve_for_cpp)
    return future


def _resolve_for_cpp() -> None:
    """Ends a backward pass, after which C++ would take the error that Python keeps in a future for its result."""
    error = resolve()
    if error is not None:
        raise error


def resolve(until: Any = None) -> Exception | None:
    """Gives the running rank's futures their results, in the order of their works; until one has its. Returns the first
    error that one has got."""
    waiting, first = _unresolved.get(), None
    while waiting and not (until is not None and _is_done(until)):
        future, work, value = waiting.popleft()
        try:
            work.wait()
        except Exception as error:
            future.set_exception(error)
            first = first or error
        else:
            future.set_result(value)
    return first


def _resolve_settled() -> None:
    """Gives results to the futures of works whose data is in place."""
    waiting = _unresolved.get()
    while waiting and waiting[0][1].is_settled():
        future, work, value = waiting.popleft()
        work.wait()
        future.set_result(value)


_is_done = torch._C.Future.done
_wait = torch._C.Future.wait


def done(self: Any) -> bool:
    """Says whether the future has a result, or an error."""
    if not _is_done(self) and runtime.running() is not None:
        _resolve_settled()
    return bool(_is_done(self))


def wait(self: Any) -> Any:
    """Its result; raises its error."""
    if not _is_done(self) and runtime.running() is not None:
        resolve(self)
    return _wait(self)
