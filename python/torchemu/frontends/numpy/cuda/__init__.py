"""torch.cuda: the simulated devices under the name that programs written for GPUs use. See torchemu.ahbm."""

from __future__ import annotations

from typing import Any

from torchemu.errors import OutOfMemoryError
from torchemu.frontends.numpy import ahbm
from torchemu.frontends.numpy._absent import missing
from torchemu.frontends.numpy.cuda import memory
from torchemu.frontends.numpy.cuda._devices import (
    can_device_access_peer,
    device,
    device_of,
    get_arch_list,
    get_device_capability,
    get_device_name,
    get_device_properties,
    init,
    ipc_collect,
    is_bf16_supported,
    is_current_stream_capturing,
    is_initialized,
    is_tf32_supported,
)
from torchemu.frontends.numpy.cuda._random import (
    get_rng_state,
    get_rng_state_all,
    initial_seed,
    manual_seed,
    manual_seed_all,
    seed,
    seed_all,
    set_rng_state,
    set_rng_state_all,
)
from torchemu.frontends.numpy.cuda.memory import (
    empty_cache,
    get_allocator_backend,
    get_per_process_memory_fraction,
    max_memory_allocated,
    max_memory_cached,
    max_memory_reserved,
    mem_get_info,
    memory_allocated,
    memory_cached,
    memory_reserved,
    memory_stats,
    memory_summary,
    reset_accumulated_memory_stats,
    reset_max_memory_allocated,
    reset_max_memory_cached,
    reset_peak_memory_stats,
    set_per_process_memory_fraction,
)

__all__ = [
    "OutOfMemoryError",
    "can_device_access_peer",
    "device",
    "device_of",
    "empty_cache",
    "get_allocator_backend",
    "get_arch_list",
    "get_device_capability",
    "get_device_name",
    "get_device_properties",
    "get_per_process_memory_fraction",
    "get_rng_state",
    "get_rng_state_all",
    "init",
    "initial_seed",
    "ipc_collect",
    "is_bf16_supported",
    "is_current_stream_capturing",
    "is_initialized",
    "is_tf32_supported",
    "manual_seed",
    "manual_seed_all",
    "max_memory_allocated",
    "max_memory_cached",
    "max_memory_reserved",
    "mem_get_info",
    "memory",
    "memory_allocated",
    "memory_cached",
    "memory_reserved",
    "memory_stats",
    "memory_summary",
    "reset_accumulated_memory_stats",
    "reset_max_memory_allocated",
    "reset_max_memory_cached",
    "reset_peak_memory_stats",
    "seed",
    "seed_all",
    "set_per_process_memory_fraction",
    "set_rng_state",
    "set_rng_state_all",
]


def __getattr__(name: str) -> Any:
    """All else is torch.ahbm's."""
    found = getattr(ahbm, name, None)
    if found is None:
        raise AttributeError(missing(f"torch.cuda.{name}"))
    return found
