"""Footprints: what ranks may notice of each other, for who explores the orders in which they take turns.

Two steps of different ranks that leave no footprint at the same place may come in any order, and one order of them is
enough. So each place in this package at which ranks share something, and do not meet in the core, says so here.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Hashable

from torchemu import runtime
from torchemu.bridge.binding import go

ALONE, TOGETHER, LOOKING = 0, 1, 2
"""Kinds of use: of the first one the order matters; uses of any other kind do not mind their own like."""

ENDS = "ends"
"""The place at which ranks end."""

_ANYTHING = 0
"""The place of what has none of its own."""

_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_NOTICED = {
    "fcntl": ("flock", "lockf"),
    "mmap": ("__new__",),
    "os": (
        *("chmod", "chown", "exec", "fork", "forkpty", "kill", "link", "lockf", "mkdir", "posix_spawn", "remove"),
        *("rename", "rmdir", "symlink", "system", "truncate", "utime"),
    ),
    "socket": ("bind", "connect"),
    "sqlite3": ("connect",),
    "subprocess": ("Popen",),
}
"""Events of audits, by module, by which ranks may notice each other through the system."""


def use(place: Hashable = None, kind: int = ALONE) -> None:
    """Notes that the running rank uses what others may use.

    Args:
        place: it; None is anything at all.
        kind: how it is used; the caller may have kinds of its own.
    """
    context = runtime.present()
    if context is not None and context.world.explores:
        at = _ANYTHING if place is None else hash(place) or 1
        go.Footprint(context.world.handle, at, kind)


def use_one(place: Hashable, kind: int = ALONE) -> None:
    """Acts as use, of something that is apart from all else but who uses anything at all."""
    use(place, kind)
    use(None, TOGETHER)


def hide() -> None:
    """Notes that ranks may from now on notice each other where nobody says so: all orders matter."""
    context = runtime.present()
    if context is not None and context.world.explores:
        go.Hides(context.world.handle)


def fail() -> None:
    """Notes that the running rank fails."""
    context = runtime.present()
    if context is not None and context.world.explores:
        go.Fails(context.world.handle)


def watch_system() -> None:
    """Notes from now on what ranks do with files, processes and sockets."""
    global _watches
    if not _watches:
        _watches = True
        sys.addaudithook(_audited)


_watches = False


def _audited(event: str, args: tuple[object, ...]) -> None:
    module, _, name = event.partition(".")
    if name in _NOTICED.get(module, ()) or (event == "open" and _is_written(*args)):
        context = runtime.present()
        if context is not None and context.tasks is not None:
            hide()


def _is_written(path: object, mode: object, flags: object) -> bool:
    """Says whether a file is opened to write, of those that others may read."""
    if not isinstance(flags, int) or not flags & _WRITING:
        return False
    return not isinstance(path, str) or not (path == os.devnull or path.endswith(".pyc") or "__pycache__" in path)
