"""torchrun as a program that ranks start: torchemu runs in its place, in a process, World and time of its own."""

from __future__ import annotations

import contextlib
import functools
import os
import shlex
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

from torchemu.launch.patches import current, replace

_MODULE = "torch.distributed.run"
_OF_SHELLS = frozenset(";&|<>$`\n(){}*?~")
"""Characters of commands that only a shell understands."""


def install(stack: contextlib.ExitStack, options: Sequence[str]) -> None:
    """Lets ranks start torchemu where they start torchrun, until the stack is closed.

    Args:
        options: those of ``torchemu run`` that are this run's.
    """
    real = subprocess.Popen.__init__

    @functools.wraps(real)
    def popen(self: Any, args: Any, *rest: Any, **kwargs: Any) -> None:
        if current() is not None and not rest and kwargs.get("executable") is None:
            args = _instead(args, options, bool(kwargs.get("shell")))
        real(self, args, *rest, **kwargs)

    replace(stack, subprocess.Popen, "__init__", popen)


def _instead(args: Any, options: Sequence[str], shell: bool) -> Any:
    """Returns the command that is run in the place of one: the same where it is not torchrun's."""
    if isinstance(args, str):
        if not shell or not _OF_SHELLS.isdisjoint(args):
            return args
        try:
            found = _arguments(shlex.split(args))
        except ValueError:
            return args
        return args if found is None else shlex.join(_command(found, options))
    if shell or not isinstance(args, list | tuple):
        return args
    found = _arguments([os.fsdecode(each) for each in args])
    return args if found is None else _command(found, options)


def _command(arguments: Sequence[str], options: Sequence[str]) -> list[str]:
    return [sys.executable, "-m", "torchemu", "run", *options, *arguments]


def _arguments(argv: Sequence[str]) -> list[str] | None:
    """Returns the arguments of torchrun; None where it is another program."""
    name = os.path.basename(argv[0]) if argv else ""
    if name == "torchrun":
        return list(argv[1:])
    if name.startswith("python") and _MODULE in argv:
        at = argv.index(_MODULE)
        if argv[at - 1] == "-m" and all(each.startswith("-") for each in argv[1:at]):
            return list(argv[at + 1 :])
    return None
