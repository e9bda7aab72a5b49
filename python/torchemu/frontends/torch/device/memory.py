"""torch.cuda's figures of memory, in the shape in which PyTorch's C++ code has them."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from torchemu.frontends.torch.device import places, visible
from torchemu.frontends.torch.device.ground import memory_use

_IN_POOLS = (
    "allocation", "segment", "active", "inactive_split", "allocated_bytes", "reserved_bytes", "active_bytes",
    "inactive_split_bytes", "requested_bytes",
)  # fmt: skip
_COUNTS = ("oversize_allocations", "oversize_segments")
_NUMBERS = (
    "num_alloc_retries", "num_ooms", "max_split_size", "num_sync_all_streams", "num_device_alloc", "num_device_free",
)  # fmt: skip
_BYTES = ("allocated_bytes", "reserved_bytes", "active_bytes", "requested_bytes")
_PIECES = ("allocation", "segment", "active")


def _use(device: int | None) -> memory_use.Use | None:
    """Returns the memory use of the rank's device; None for another one, on which it has nothing."""
    if device is not None and device != places.here().number:
        return None
    use = memory_use.current()
    use.settle()
    return use


def _figure(current: int = 0, peak: int = 0, allocated: int = 0) -> dict[str, int]:
    return {"current": current, "peak": peak, "allocated": allocated, "freed": allocated - current}


def stats(device: int | None = None) -> dict[str, Any]:
    """Returns the figures of a device. Nothing is kept back for later: reserved is allocated."""
    use = _use(device)
    found: dict[str, Any] = {}
    for name in _IN_POOLS:
        figure = _figure()
        if use is not None and name in _BYTES:
            figure = _figure(use.allocated, use.peak, use.taken)
        elif use is not None and name in _PIECES:
            figure = _figure(use.count, use.count, use.count)
        found[name] = {"all": figure, "small_pool": _figure(), "large_pool": dict(figure)}
    found.update({name: _figure() for name in _COUNTS})
    found.update(dict.fromkeys(_NUMBERS, 0))
    return found


def reset_peak(device: int | None = None) -> None:
    """Begins to look for the highest use anew."""
    use = _use(device)
    if use is not None:
        use.reset_peak()


def reset_accumulated(device: int | None = None) -> None:
    """Begins to count all bytes that were ever taken anew."""
    use = _use(device)
    if use is not None:
        use.taken = use.allocated


def info(device: Any = None) -> tuple[int, int]:
    """Returns the bytes that are free, and all bytes of a device."""
    capacity = memory_use.current().capacity
    meant = places.meant(device)
    use = _use(None if meant is None else meant.index)
    return capacity - (0 if use is None else use.allocated), capacity


def set_fraction(fraction: float, device: int | None = None) -> None:
    """Sets the share of the device's memory that the rank may take."""
    use = _use(device)
    if use is not None:
        use.fraction = fraction


def fraction(device: int | None = None) -> float:
    """Returns the share of the device's memory that the rank may take."""
    use = _use(device)
    return 1.0 if use is None else use.fraction


def _segment(address: int, nbytes: int, kept: int, device: int) -> dict[str, Any]:
    block = {"address": address, "size": kept, "requested_size": nbytes, "state": "active_allocated", "frames": []}
    return {
        "device": device,
        "address": address,
        "total_size": kept,
        "allocated_size": kept,
        "active_size": kept,
        "requested_size": nbytes,
        "stream": 0,
        "segment_type": "large",
        "segment_pool_id": (0, 0),
        "is_expandable": False,
        "frames": [],
        "blocks": [block],
    }


def snapshot(asked: tuple[Any, ...] | None = None) -> dict[str, Any]:
    """Returns what torch.cuda.memory._snapshot shows: a segment for each storage, as nothing is kept back, and no
    history. A pool's is empty: memory is the device's, whichever pool the program has asked for.

    Args:
        asked: the pool, two numbers, and whether traces are wanted; (0, 0) and None are the device's own.
    """
    use, device = memory_use.current(), places.here().number
    use.settle()
    held = [] if asked is not None and tuple(asked[:2]) != (0, 0) else use.held()
    return {
        "segments": [_segment(*one, device) for one in sorted(held)],
        "device_traces": [[] for _ in range(visible.count())],
        "external_annotations": [],
        "allocator_settings": {"PYTORCH_CUDA_ALLOC_CONF": "", "expandable_segments": False},
    }


class Pool:
    """torch.cuda.MemPool: a number, and nothing else. Memory is the device's.

    Args:
        allocator: kept.
        use_on_oom, no_split: accepted, and without effect.
    """

    _numbers = itertools.count(1)

    def __init__(self, allocator: Any = None, use_on_oom: bool = False, no_split: bool = False) -> None:
        self.allocator, self.id = allocator, (0, next(self._numbers))

    def use_count(self) -> int:
        """Returns the references to the pool: the program's."""
        return 1

    def snapshot(self, include_traces: bool = True) -> list[Any]:
        """Returns the pool's segments, of which there are none."""
        return []


class _Making(TorchDispatchMode):
    """Gives an allocator each tensor that is made meanwhile.

    Args:
        made: of the allocator: it returns the tensor that is to take its place.
    """

    def __init__(self, made: Callable[[torch.Tensor], torch.Tensor]) -> None:
        super().__init__()
        self._made = made

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Calls an operation."""
        result = func(*args, **(kwargs or {}))
        if type(result) is torch.Tensor and not any(a.alias_info is not None for a in func._schema.returns):
            return self._made(result)
        return result


@contextlib.contextmanager
def use_pool(pool: Pool, device: Any = None) -> Iterator[None]:
    """torch.cuda.use_mem_pool: what is allocated meanwhile is the device's, as ever, and symmetric if the pool's is."""
    made = getattr(pool.allocator, "made", None)
    with contextlib.nullcontext() if made is None else _Making(made):
        yield
