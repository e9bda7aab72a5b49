"""What threads wait for, as reports of deadlocks say it: Python's call that waits, and the place in the program."""

from __future__ import annotations

import os
import sys
import sysconfig
import types
from collections.abc import Iterator

from torchemu import _runtime

_PYTHON = tuple(os.path.join(sysconfig.get_path(name), "") for name in ("stdlib", "platstdlib"))
_INSTALLED = f"{os.sep}site-packages{os.sep}"
_STARTS = ("Thread._bootstrap", "Thread._bootstrap_inner", "Thread.run")  # below them is what a thread does


def is_pythons(code: types.CodeType) -> bool:
    """Whether code is of Python's own library."""
    return code.co_filename.startswith(_PYTHON) and _INSTALLED not in code.co_filename


def called_by_program() -> bool:
    """Whether it is the program that has called into torchemu, and no code of Python's library."""
    frame: types.FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename.startswith(_runtime.PACKAGE):
        frame = frame.f_back
    return frame is None or not is_pythons(frame.f_code)


def described(call: str, limit: float | None = None) -> str:
    """What the running thread is about to wait for.

    Args:
        call: what has been called, where that is not a call of Python's library.
        limit: seconds.
    """
    calls = list(_calls())
    place = _runtime.call_site()
    if calls:
        call, place = _named(calls[-1]), _place(calls[-1].f_back)
    if limit is not None:
        call += f", {limit:g} s at most,"
    return f"{call} at {place}" if place else call


def _calls() -> Iterator[types.FrameType]:
    """The frames of Python's library between the program and torchemu, the innermost first."""
    frame: types.FrameType | None = sys._getframe(2)
    while frame is not None:
        code = frame.f_code
        if not code.co_filename.startswith(_runtime.PACKAGE):
            if not is_pythons(code) or code.co_qualname in _STARTS:
                return
            yield frame
        frame = frame.f_back


def _named(frame: types.FrameType) -> str:
    """Such as "Event.wait()", and of which thread."""
    name = f"{frame.f_code.co_qualname}()"
    thread = getattr(frame.f_locals.get("self"), "_name", None) if name.startswith("Thread.") else None
    return name if thread is None else f"{name} of thread {thread!r}"


def _place(frame: types.FrameType | None) -> str:
    """Where the program is; "" where it is nowhere: Python's library runs all of the thread."""
    while frame is not None and frame.f_code.co_filename.startswith(_runtime.PACKAGE):
        frame = frame.f_back
    if frame is None or is_pythons(frame.f_code):
        return ""
    return f"{frame.f_code.co_filename}:{frame.f_lineno} in {frame.f_code.co_name}"
