"""torch.cuda: the simulated devices under the name that programs written for GPUs use. See torchemu.ahbm."""

from __future__ import annotations

from typing import Any

from torchemu.errors import OutOfMemoryError
from torchemu.frontends.numpy import ahbm
from torchemu.frontends.numpy._tensor.memory import old_types
from torchemu.frontends.numpy.cuda import amp, memory, nvtx
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
from torchemu.frontends.numpy.cuda.memory import (
    MemPool,
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
    use_mem_pool,
)
from torchemu.frontends.numpy.random import get_rng_state as _get_rng_state
from torchemu.frontends.numpy.random import initial_seed, manual_seed, seed
from torchemu.frontends.numpy.random import set_rng_state as _set_rng_state
from torchemu.unsupported import unsupported_class, unsupported_function

__all__ = [
    "CUDAGraph",
    "MemPool",
    "OutOfMemoryError",
    "amp",
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
    "graph",
    "init",
    "initial_seed",
    "ipc_collect",
    "is_bf16_supported",
    "is_current_stream_capturing",
    "is_initialized",
    "is_tf32_supported",
    "make_graphed_callables",
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
    "nvtx",
    "reset_accumulated_memory_stats",
    "reset_max_memory_allocated",
    "reset_max_memory_cached",
    "reset_peak_memory_stats",
    "seed",
    "seed_all",
    "set_per_process_memory_fraction",
    "set_rng_state",
    "set_rng_state_all",
    "use_mem_pool",
]

seed_all = seed
globals().update(old_types("cuda"))

_NO_GRAPHS = "operations are issued one by one; what they cost the host is the topology's host.launch_overhead"
CUDAGraph = unsupported_class("torch.cuda.CUDAGraph", _NO_GRAPHS)
graph = unsupported_class("torch.cuda.graph", _NO_GRAPHS)
make_graphed_callables = unsupported_function("torch.cuda.make_graphed_callables", _NO_GRAPHS)


def get_rng_state(device: Any = None) -> Any:
    """torch.get_rng_state: a rank has one generator for all devices."""
    return _get_rng_state()


def set_rng_state(new_state: Any, device: Any = None) -> None:
    """torch.set_rng_state: a rank has one generator for all devices."""
    _set_rng_state(new_state)


def get_rng_state_all() -> list[Any]:
    """The state for each device: the same, for a rank has one generator."""
    return [_get_rng_state() for _ in range(ahbm.device_count())]


def set_rng_state_all(new_states: Any) -> None:
    """Sets the state for each device; the last one counts."""
    for state in new_states:
        _set_rng_state(state)


def __getattr__(name: str) -> Any:
    """All else is torch.ahbm's."""
    return getattr(ahbm, name)


def manual_seed_all(seed: int) -> None:
    """Seeds the rank's random numbers, which are those of its devices, too."""
    manual_seed(seed)
