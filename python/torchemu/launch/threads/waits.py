"""Words for the waits of threads in reports of deadlocks: Python's call that waits, and the place in the program."""

from __future__ import annotations

import sys
import traceback
import types

from torchemu import runtime
from torchemu.runtime import frames

_STARTS = ("Thread._bootstrap", "Thread._bootstrap_inner", "Thread.run")  # what they call is what a thread does


def is_pythons(code: types.CodeType) -> bool:
    """Reports whether code is of Python's own library."""
    return frames.is_pythons(code.co_filename)


def called_by_program() -> bool:
    """Reports whether it is the program that has called into torchemu, and no code of Python's library."""
    within, program = _stack()
    return not within and program is not None


def is_in_condition() -> bool:
    """Reports whether the running thread waits for a condition: it has the lock itself, for that is how it waits."""
    return any(frame.f_code.co_qualname == "Condition.wait" for frame in _stack()[0])


def described(call: str, limit: float | None = None) -> str:
    """Describes the wait that the running thread begins: "Event.wait() at train.py:7 in main".

    Args:
        call: what has been called, where that is not a call of Python's library.
        limit: seconds.
    """
    within, program = _stack()
    if within:
        call = _named(within[-1])
    if program is not None:
        return f"{call}{_limited(limit)}{_at(program)}"
    public = next((name for frame in reversed(within) if not _is_private(name := _named(frame))), call)
    return f"{public}{_limited(limit)}" + (f" in {call}" if public != call else "")


def end_of(name: str, limit: float | None) -> str:
    """Acts as described, for a wait for the end of a thread of this name."""
    _, program = _stack()
    if program is None:
        return f"the end of thread {name}, for its program has ended"
    return f"the end of thread {name}{_limited(limit)}{_at(program)}"


def cut(trace: traceback.TracebackException) -> None:
    """Takes from a traceback, at its end, the frames of Python's library that the program waits in."""
    while trace.stack and frames.is_pythons(trace.stack[-1].filename):
        trace.stack.pop()


def _limited(limit: float | None) -> str:
    return "" if limit is None else f", {limit:g} s at most,"


def _at(frame: types.FrameType) -> str:
    return f" at {frame.f_code.co_filename}:{frame.f_lineno} in {frame.f_code.co_name}"


def _named(frame: types.FrameType) -> str:
    return f"{frame.f_code.co_qualname.removeprefix('_Py')}()"


def _is_private(name: str) -> bool:
    return any(part.startswith("_") for part in name.split("."))


def _stack() -> tuple[list[types.FrameType], types.FrameType | None]:
    """The frames of Python's library that the program has called, the innermost first, and that of the program; None
    where there is none: all that a thread does is the library's, or the program has ended."""
    within: list[types.FrameType] = []
    frame: types.FrameType | None = sys._getframe(1)
    while frame is not None:
        code = frame.f_code
        if not code.co_filename.startswith(runtime.PACKAGE):
            if not is_pythons(code):
                return within, frame
            if code.co_qualname in _STARTS:
                break
            within.append(frame)
        frame = frame.f_back
    return within, None
