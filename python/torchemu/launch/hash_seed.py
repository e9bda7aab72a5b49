"""The seed of Python's hashes, by which sets of strings are ordered: fixed, so that runs repeat.

Python takes it from the environment as it starts, so the command starts itself anew where none is set. What it puts
into the environment for that is taken out again: programs see what the user has set.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

_NAME = "PYTHONHASHSEED"
_MARK = "TORCHEMU_HASH_SEED_IS_OURS"
_SEEDS = 1 << 32
_DEBUGGERS = ("debugpy", "pydevd", "pdb")


def fix(arguments: Sequence[str]) -> None:
    """Starts the process anew with a seed of hashes that follows from --seed, where the command runs a program and the
    user has set none. Under a debugger, and where Python ignores its environment, nothing happens.

    Args:
        arguments: of the command.
    """
    if os.environ.pop(_MARK, None) is not None:
        os.environ.pop(_NAME, None)
        return
    if arguments[:1] != ["run"] or _NAME in os.environ:
        return
    if sys.flags.ignore_environment or not sys.flags.hash_randomization:
        return
    if sys.gettrace() is not None or any(name in sys.modules for name in _DEBUGGERS):
        return
    os.environ.update({_NAME: str(_seed(arguments) % _SEEDS), _MARK: "1"})
    os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])


def _seed(arguments: Sequence[str]) -> int:
    """Returns the number behind the first --seed; 0 without one."""
    for option, value in zip(arguments, [*arguments[1:], ""], strict=True):
        name, equals, rest = option.partition("=")
        if name == "--seed":
            text = rest if equals else value
            return int(text) if text.lstrip("-").isdecimal() else 0
    return 0
