"""cuda.bindings.driver: words that streams write and wait for."""

from __future__ import annotations

import enum
from typing import Any

from torchemu.frontends.triton._placeholders import placeholders
from torchemu.frontends.triton_dist import _streams


class CUresult(enum.IntEnum):
    """The status that a call returns."""

    CUDA_SUCCESS = 0
    CUDA_ERROR_INVALID_VALUE = 1
    CUDA_ERROR_NOT_SUPPORTED = 801


class CUstreamWriteValue_flags(enum.IntEnum):  # noqa: N801
    """The flags of a stream's write of a word."""

    CU_STREAM_WRITE_VALUE_DEFAULT = 0
    CU_STREAM_WRITE_VALUE_NO_MEMORY_BARRIER = 1


class CUstreamWaitValue_flags(enum.IntEnum):  # noqa: N801
    """For what of a word a stream waits."""

    CU_STREAM_WAIT_VALUE_GEQ = 0
    CU_STREAM_WAIT_VALUE_EQ = 1
    CU_STREAM_WAIT_VALUE_AND = 2
    CU_STREAM_WAIT_VALUE_NOR = 3


_DONE = (CUresult.CUDA_SUCCESS,)


def cuStreamWriteValue32(stream: Any, addr: Any, value: Any, flags: Any = 0) -> tuple[CUresult]:  # noqa: N802
    """Makes a stream write a word of 32 bits."""
    _streams.write_value(stream, addr, value, 4)
    return _DONE


def cuStreamWriteValue64(stream: Any, addr: Any, value: Any, flags: Any = 0) -> tuple[CUresult]:  # noqa: N802
    """Makes a stream write a word of 64 bits."""
    _streams.write_value(stream, addr, value, 8)
    return _DONE


def cuStreamWaitValue32(stream: Any, addr: Any, value: Any, flags: Any) -> tuple[CUresult]:  # noqa: N802
    """Makes a stream wait for a word of 32 bits."""
    _streams.wait_value(stream, addr, value, flags, 4)
    return _DONE


def cuStreamWaitValue64(stream: Any, addr: Any, value: Any, flags: Any) -> tuple[CUresult]:  # noqa: N802
    """Makes a stream wait for a word of 64 bits."""
    _streams.wait_value(stream, addr, value, flags, 8)
    return _DONE


__getattr__ = placeholders("cuda.bindings.driver")
