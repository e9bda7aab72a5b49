"""Memory that layers use again and again, as Megatron's do."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Sequence
from typing import Any

import torchemu.frontends.numpy as torch
from torchemu.tp import _state

__all__ = ["GlobalMemoryBuffer", "destroy_global_memory_buffer", "get_global_memory_buffer"]


class GlobalMemoryBuffer:
    """Tensors by name, whose memory is that of the last one of the name and dtype, if it is large enough."""

    def __init__(self) -> None:
        self.buffer: dict[tuple[str, torch.dtype], torch.Tensor] = {}

    def get_tensor(
        self,
        tensor_shape: Sequence[int],
        dtype: torch.dtype,
        name: str,
        mem_alloc_context: Callable[[], contextlib.AbstractContextManager[Any]] | None = None,
    ) -> torch.Tensor:
        """A tensor without values, on the rank's device.

        Args:
            tensor_shape, dtype: of the tensor.
            name: whose memory it takes.
            mem_alloc_context: what memory is allocated in.
        """
        size = math.prod(tensor_shape)
        known = self.buffer.get((name, dtype))
        if known is None or known.numel() < size:
            with contextlib.nullcontext() if mem_alloc_context is None else mem_alloc_context():
                known = torch.empty(size, dtype=dtype, device=torch.cuda.current_device())
            self.buffer[name, dtype] = known
        return known[:size].view(*tensor_shape)


def get_global_memory_buffer() -> GlobalMemoryBuffer:
    """The running rank's, which begins with its groups.

    Raises:
        AssertionError: the rank has no groups.
    """
    state = _state.current()
    assert state.initialize is not None, "global memory buffer is not initialized"
    if state.memory is None:
        state.memory = GlobalMemoryBuffer()
    return state.memory


def destroy_global_memory_buffer() -> None:
    """Forgets it."""
    _state.current().memory = None
