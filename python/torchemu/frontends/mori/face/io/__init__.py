"""mori.io: transfers that a host posts to network cards."""

from __future__ import annotations

from torchemu.frontends.mori._io import IOEngine, IOEngineSession, set_log_level
from torchemu.frontends.mori._io_types import (
    BackendType,
    EngineDesc,
    IOEngineConfig,
    MemoryDesc,
    MemoryLocationType,
    PollCqMode,
    RdmaBackendConfig,
    StatusCode,
    TransferStatus,
)

__all__ = [
    "BackendType",
    "EngineDesc",
    "IOEngine",
    "IOEngineConfig",
    "IOEngineSession",
    "MemoryDesc",
    "MemoryLocationType",
    "PollCqMode",
    "RdmaBackendConfig",
    "StatusCode",
    "TransferStatus",
    "set_log_level",
]
