"""The names of torchemu's lower floors on which the simulated devices stand."""

from __future__ import annotations

from torchemu.bridge.binding import go
from torchemu.bridge.handles import Handle
from torchemu.errors import OutOfMemoryError
from torchemu.runtime import memory_use, world
from torchemu.runtime.rank_local import RankLocal, ThreadLocal
from torchemu.runtime.waiting import Looks
from torchemu.runtime.world import Context

context, call_site = world.current, world.call_site

__all__ = [
    "Context",
    "Handle",
    "Looks",
    "OutOfMemoryError",
    "RankLocal",
    "ThreadLocal",
    "call_site",
    "context",
    "go",
    "memory_use",
]
