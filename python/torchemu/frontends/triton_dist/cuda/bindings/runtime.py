"""cuda.bindings.runtime: copies on streams, and questions about devices."""

from __future__ import annotations

import enum
from typing import Any

from torchemu.frontends.triton._placeholders import placeholders
from torchemu.frontends.triton_dist import _streams

cudaError_t = enum.IntEnum("cudaError_t", {"cudaSuccess": 0, "cudaErrorInvalidValue": 1})  # noqa: N816
"""The result of a call."""

_KINDS = ("HostToHost", "HostToDevice", "DeviceToHost", "DeviceToDevice")
_NUMBERS = {f"cudaMemcpy{name}": number for number, name in enumerate(_KINDS)} | {"cudaMemcpyDefault": 4}
cudaMemcpyKind = enum.IntEnum("cudaMemcpyKind", _NUMBERS)  # type: ignore[misc]  # noqa: N816
"""From where to where bytes are copied."""

_QUESTIONS = ("PerformanceRank", "AccessSupported", "NativeAtomicSupported")
_ATTRIBUTES = {f"cudaDevP2PAttr{name}": number for number, name in enumerate(_QUESTIONS, 1)}
cudaDeviceP2PAttr = enum.IntEnum("cudaDeviceP2PAttr", _ATTRIBUTES)  # type: ignore[misc]  # noqa: N816
"""Questions that can be asked about two devices."""


def cudaMemcpyAsync(dst: Any, src: Any, count: int, kind: Any, stream: Any) -> tuple[cudaError_t]:  # noqa: N802
    """Makes a stream copy bytes between places of symmetric memory."""
    _streams.copy(stream, dst, src, int(count))
    return (cudaError_t.cudaSuccess,)


def cudaDeviceGetP2PAttribute(attr: Any, src: int, dst: int) -> tuple[cudaError_t, int]:  # noqa: N802
    """1: devices of a node reach each other's memory, with atomic operations."""
    return cudaError_t.cudaSuccess, 1


__getattr__ = placeholders("cuda.bindings.runtime")
