"""Memory of the device that the rank's tensors take. Nothing is kept back for later: reserved is allocated.

A device here means the rank's own: its tensors are nowhere else.
"""

from __future__ import annotations

from typing import Any

from torchemu.frontends.numpy import ahbm
from torchemu.runtime import memory_use


def _use(device: Any) -> memory_use.Use | None:
    """Returns that of the rank's device; None for another one."""
    if ahbm.index_of(device) != ahbm.own_device():
        return None
    use = memory_use.current()
    use.settle()
    return use


def memory_allocated(device: Any = None) -> int:
    """Bytes that the rank's tensors take of a device, in blocks of 512; views take nothing. Raises as set_device."""
    use = _use(device)
    return 0 if use is None else use.allocated


def max_memory_allocated(device: Any = None) -> int:
    """The most bytes that memory_allocated would have told so far, or since reset_peak_memory_stats."""
    use = _use(device)
    return 0 if use is None else use.peak


memory_reserved = memory_cached = memory_allocated
max_memory_reserved = max_memory_cached = max_memory_allocated


def reset_peak_memory_stats(device: Any = None) -> None:
    """Begins to look for the most bytes anew."""
    use = _use(device)
    if use is not None:
        use.reset_peak()


reset_max_memory_allocated = reset_max_memory_cached = reset_peak_memory_stats


def reset_accumulated_memory_stats(device: Any = None) -> None:
    """Begins to count all bytes that were ever taken anew."""
    use = _use(device)
    if use is not None:
        use.taken = use.allocated


def mem_get_info(device: Any = None) -> tuple[int, int]:
    """Bytes that are free, and all bytes of a device."""
    capacity = memory_use.current().capacity
    return capacity - memory_allocated(device), capacity


def memory_stats(device: Any = None) -> dict[str, int]:
    """The numbers that programs look for, by PyTorch's names; others are not there."""
    use = _use(device) or memory_use.Use()
    stats = {"num_alloc_retries": 0, "num_ooms": 0, "allocation.all.current": use.count}
    for kind in ("allocated_bytes", "reserved_bytes", "active_bytes"):
        for pool in ("all", "large_pool"):
            stats[f"{kind}.{pool}.current"] = use.allocated
            stats[f"{kind}.{pool}.peak"] = use.peak
            stats[f"{kind}.{pool}.allocated"] = use.taken
            stats[f"{kind}.{pool}.freed"] = use.taken - use.allocated
    return stats


def memory_summary(device: Any = None, abbreviated: bool = False) -> str:
    """A table for people."""
    use = _use(device) or memory_use.Use()
    numbers = (("Allocated memory", use.allocated), ("Peak usage", use.peak), ("Capacity", use.capacity))
    rows = [f"| {name:<18} | {memory_use.readable(n):>14} |" for name, n in numbers]
    line = "=" * len(rows[0])
    title = f"memory of device {ahbm.index_of(device)}"
    return "\n".join([line, f"|{title:^{len(line) - 2}}|", line, *rows, line])


def empty_cache() -> None:
    """Does nothing: no memory is kept back."""


def get_allocator_backend() -> str:
    """The name of PyTorch's usual one."""
    return "native"


def set_per_process_memory_fraction(fraction: float, device: Any = None) -> None:
    """Lets the rank take this share of its device's memory only.

    Raises:
        TypeError, ValueError: not a number from 0 to 1.
    """
    if not isinstance(fraction, float):
        raise TypeError("Invalid type for fraction argument, must be `float`")
    if not 0 <= fraction <= 1:
        raise ValueError(f"Invalid fraction value: {fraction}. Allowed range: 0~1")
    use = _use(device)
    if use is not None:
        use.fraction = fraction


def get_per_process_memory_fraction(device: Any = None) -> float:
    """Returns what was set; 1 where nothing was."""
    use = _use(device)
    return 1.0 if use is None else use.fraction
