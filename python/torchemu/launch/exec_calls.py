"""os.exec*: another program takes the place of the rank's, and of no other rank's. It runs beside the ranks' process,
with the rank's variables and folder, and the rank ends as it does."""

from __future__ import annotations

import contextlib
import functools
import os
import subprocess
import sys
import types
from collections.abc import Callable
from typing import Any, NoReturn

from torchemu import runtime
from torchemu.launch.exits import ImmediateExit
from torchemu.launch.patches import current, replace
from torchemu.launch.threads.waits import is_pythons


def install(stack: contextlib.ExitStack) -> None:
    """Lets ranks be replaced one by one, until the stack is closed."""
    for name in ("execv", "execve"):
        replace(stack, os, name, _beside(getattr(os, name)))


def _beside(real: Callable[..., NoReturn]) -> Callable[..., NoReturn]:
    @functools.wraps(real)
    def execute(path: Any, argv: Any, env: Any = None, /) -> NoReturn:
        context = runtime.running()
        if current() is None or context is None or context.tasks is None:
            real(*((path, argv) if env is None else (path, argv, env)))
        sys.stdout.flush()
        sys.stderr.flush()
        command, given = list(argv), {"executable": path}
        if os.path.basename(os.fsdecode(path)) == os.path.basename(os.fsdecode(command[0])):
            command, given = [path, *command[1:]], {}  # torchrun, say, in whose place torchemu runs
        status = subprocess.run(command, env=env, close_fds=False, check=False, **given).returncode
        print(
            f"torchemu: rank {context.rank} was replaced by {os.fsdecode(path)}, at {_place()}; "
            f"it has ended with status {status}",
            file=sys.stderr,
        )
        context.tasks.leave(context.rank, ImmediateExit(status))

    return execute


def _place() -> str:
    """Returns the place in the program, and not in Python's library, which calls one function by another."""
    frame: types.FrameType | None = sys._getframe(2)
    while frame is not None and is_pythons(frame.f_code):
        frame = frame.f_back
    if frame is None:
        return runtime.call_site()
    return f"{frame.f_code.co_filename}:{frame.f_lineno} in {frame.f_code.co_name}"
