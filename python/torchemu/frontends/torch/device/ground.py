"""What of torchemu's lower floors the simulated devices stand on."""

from __future__ import annotations

from torchemu import _memory_use as memory_use
from torchemu import _runtime
from torchemu._binding import go
from torchemu._handles import Handle
from torchemu._rank_local import RankLocal, ThreadLocal
from torchemu._runtime import Context
from torchemu._waiting import Looks
from torchemu.errors import OutOfMemoryError

context = _runtime.current

__all__ = ["Context", "Handle", "Looks", "OutOfMemoryError", "RankLocal", "ThreadLocal", "context", "go", "memory_use"]
