"""mori.ccl.AllGatherIntoTensor: an all-gather by addresses."""

from __future__ import annotations

import enum
from typing import Any

from torchemu.frontends.mori._flat import AllgatherSdma

DataType = enum.IntEnum(
    "DataType",
    "kInt8 kUint8 kInt16 kUint16 kInt32 kUint32 kInt64 kUint64 kFloat16 kBFloat16 kFloat32 kFloat64",
    start=0,
)
"""Types of elements."""

_SIZES = (1, 1, 2, 2, 4, 4, 8, 8, 2, 2, 4, 8)


def size_of(dtype: Any) -> int:
    """Returns the bytes of an element.

    Raises:
        ValueError: there is no such type.
    """
    return _SIZES[DataType(dtype)]


class AllGatherIntoTensor(AllgatherSdma):
    """All-gather among PEs of one node, of memory at addresses.

    Args:
        my_pe, npes: this PE and how many there are.
        transit_buffer_size: bytes of a shard at most; 512 MiB.
        copy_output_to_user: the result is copied to the output.
        auto_register: accepted.
        input_buffer_size, output_buffer_size: instead of transit_buffer_size.
    """

    def __init__(
        self, my_pe: int, npes: int, transit_buffer_size: int | None = None, copy_output_to_user: bool = True,
        auto_register: bool = False, *, input_buffer_size: int | None = None, output_buffer_size: int | None = None,
    ) -> None:  # fmt: skip
        if transit_buffer_size is None and input_buffer_size is None and output_buffer_size is None:
            output_buffer_size = 512 << 20
        super().__init__(my_pe, npes, input_buffer_size, output_buffer_size, transit_buffer_size, copy_output_to_user)

    def __call__(self, sendptr: int, recvptr: int, count: int, dtype: Any, stream_ptr: Any = None) -> bool:  # type: ignore[override]
        """Gathers count elements of each PE, from one address to another, in the order of a stream.

        Raises:
            RuntimeError: the bytes of a PE are no multiple of 4; the message exceeds the buffers.
            ValueError: there is no such type.
        """
        nbytes = count * size_of(dtype)
        if nbytes % 4:
            raise RuntimeError(
                f"AllGatherIntoTensor: per-rank byte length must be a multiple of 4, and {count} elements of "
                f"{DataType(dtype).name} have {nbytes}"
            )
        self._require_room(nbytes, nbytes * self.npes, False)
        if nbytes:
            ends = {"input": (int(sendptr), nbytes), "output": (int(recvptr), nbytes * self.npes)}
            self._launch(ends["input"], ends["output"], nbytes, False, self._run, stream_ptr)
        return True
