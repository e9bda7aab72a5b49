"""Words for the faults by which a compiled kernel has to be left."""

from __future__ import annotations

import ctypes
import signal
from typing import Any

from torchemu.frontends.pto._lines import Lines

_TEXTS = {
    "no end": "the kernel does not come to an end: 2147483648 blocks of code since its last operation",
    "too deep": "the kernel needs more than 2 MiB of stack: a recursion does not end, or local variables are large",
    "abort": "the kernel called abort()",
    "exit": "the kernel called exit()",
    "stack": "the kernel has overwritten its stack",
    "division": "an integer is divided by 0, or the quotient cannot be represented",
    "index": "index {} is out of the array's bounds",
    "unreachable": "the kernel has got to __builtin_unreachable()",
    "no return": "a function that returns a value ends without return",
    "no tensor": "argument tensor({}) does not exist: the task has {} tensors",
    "no scalar": "argument scalar({}) does not exist: the task has {} scalars",
    "tensor after scalar": "a tensor after a scalar: all tensors of an Arg come before its scalars",
    "too many tensors": "an Arg has room for 16 tensors",
    "too many scalars": "an Arg has room for 128 scalars",
}
FAULTS = frozenset((*_TEXTS, "signal", "exception"))
"""The calls that say that a kernel has to be left."""

_IN_CODE = ("no end", "too deep", "abort", "exit", "stack", "signal", "exception")
"""The calls whose first word is a place in the library's code, or negative."""


def described(fault: str, words: Any, at: str, lines: Lines) -> str:
    """The line and what is wrong there."""
    numbers = list(words)
    if fault in _IN_CODE and numbers[0] >= 0:
        at = lines.at(numbers[0])
    elif fault in _IN_CODE and at:
        at = f"{at} or later"
    text = _text(fault, numbers)
    return f"{at}: {text}" if at else text


def _text(fault: str, numbers: list[int]) -> str:
    if fault == "signal":
        return f"the kernel was ended by {signal.Signals(numbers[1]).name}"
    if fault == "exception":
        what = ctypes.string_at(numbers[1]).decode(errors="replace") if numbers[1] else "no std::exception"
        return f"the kernel threw an exception: {what}"
    return _TEXTS[fault].format(*numbers)
