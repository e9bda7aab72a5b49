"""torch.cuda.nvtx: names for what the program does, as torch.profiler.record_function gives."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from torchemu.profile.annotation import record_function
from torchemu.runtime.rank_local import RankLocal, ThreadLocal

__all__ = ["mark", "range", "range_end", "range_pop", "range_push", "range_start"]

_pushed: ThreadLocal[list[record_function]] = ThreadLocal(list)
_started: RankLocal[dict[int, record_function]] = RankLocal(dict)


def range_push(msg: str) -> int:
    """Begins a range within those that have begun; returns how many those are."""
    stack = _pushed.get()
    stack.append(record_function(msg).__enter__())
    return len(stack) - 1


def range_pop() -> int:
    """Ends the range that began last; returns how many are left, -1 where none had begun."""
    stack = _pushed.get()
    if stack:
        stack.pop().__exit__()
        return len(stack)
    return -1


def range_start(msg: str) -> int:
    """Begins a range that has nothing to do with others; returns what range_end takes."""
    started = _started.get()
    number = max(started, default=0) + 1
    started[number] = record_function(msg).__enter__()
    return number


def range_end(range_id: int) -> None:
    """Ends a range that range_start has begun."""
    begun = _started.get().pop(range_id, None)
    if begun is not None:
        begun.__exit__()


def mark(msg: str) -> None:
    """Names a moment."""
    with record_function(msg):
        pass


@contextlib.contextmanager
def range(msg: str, *args: object, **kwargs: object) -> Iterator[None]:  # noqa: A001 (PyTorch's name)
    """A range for a with block or a decorated function. The message is formatted with the arguments."""
    range_push(msg.format(*args, **kwargs))
    try:
        yield
    finally:
        range_pop()
