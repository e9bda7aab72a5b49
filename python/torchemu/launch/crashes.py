"""Crashes of code in C: the process ends, and says whose program it was, where, and what that had done last."""

from __future__ import annotations

import ctypes
import faulthandler
import os
import signal
import sys
from typing import Any

from torchemu import runtime
from torchemu.runtime import frames

_SIGNALS = (signal.SIGSEGV, signal.SIGBUS, signal.SIGFPE, signal.SIGILL, signal.SIGABRT)
_STATUS = 1
"""The exit status: torchrun's."""

_Handler = ctypes.CFUNCTYPE(None, ctypes.c_int)
_kept: list[Any] = []  # the function that the system calls
_leave = os._exit  # the process's: ranks have another one


def report() -> None:
    """Makes crashes of this process say which rank's program it was."""
    if _kept or not hasattr(sys.__stderr__, "fileno"):
        return
    handler = _Handler(_crashed)
    _kept.append(handler)
    set_handler = ctypes.CDLL(None).signal
    set_handler.argtypes, set_handler.restype = [ctypes.c_int, _Handler], ctypes.c_void_p
    for number in _SIGNALS:
        set_handler(number, handler)
    faulthandler.enable()  # it prints what Python knows, and hands on to the one before


def _crashed(number: int) -> None:
    """Prints the report, and ends the process."""
    try:
        os.write(2, _text(number).encode())
    finally:
        _leave(_STATUS)


def _text(number: int) -> str:
    name, context = signal.Signals(number).name, runtime.running()
    if context is None or context.tasks is None:
        return f"torchemu: {name}: code in C has crashed outside of ranks\n"
    last = (
        ""
        if context.last is None
        else f"  last      : {context.last[0]} at {context.world.site_text(context.last[1])}\n"
    )
    return (
        f"torchemu: {name}: code in C has crashed in rank {context.rank}\n"
        "Root cause (first failure in simulated time):\n"
        f"  rank      : {context.rank} of {len(context.tasks.contexts)}\n"
        f"  exitcode  : {-number}\n"
        f"  error     : Signal {number} ({name}) received by PID {context.pid}\n"
        f"  place     : {_place()}\n{last}"
    )


def _place() -> str:
    """Returns the innermost place in the program."""
    frame = sys._getframe(1)
    while frame.f_back is not None and (frames.is_ours(file := frame.f_code.co_filename) or frames.is_pythons(file)):
        frame = frame.f_back
    return f"{frame.f_code.co_filename}:{frame.f_lineno} in {frame.f_code.co_name}"
