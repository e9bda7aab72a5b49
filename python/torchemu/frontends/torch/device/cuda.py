"""torch.cuda and torch.accelerator: their functions, on the simulated devices of the running rank."""

from __future__ import annotations

import functools
import uuid
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NoReturn

import torch

from torchemu.frontends.torch.device import (
    cudart,
    generators,
    graphs,
    initialization,
    launches,
    legacy,
    memory,
    named,
    places,
    streams,
    visible,
)
from torchemu.frontends.torch.device.ground import context
from torchemu.frontends.torch.device.patches import Replacements
from torchemu.runtime.device_properties import CAPABILITY, DeviceProperties, of_running_rank
from torchemu.runtime.rank_local import RankTable


@dataclass(frozen=True)
class Properties(DeviceProperties):
    """A device, with what else newer programs ask for."""

    max_threads_per_multi_processor: int = 1
    regs_per_multiprocessor: int = 0
    L2_cache_size: int = 0
    gcnArchName: str = ""  # noqa: N815 (PyTorch's name)
    shared_memory_per_multiprocessor: int = 0
    shared_memory_per_block_optin: int = 0
    clock_rate: int = 0
    memory_clock_rate: int = 0
    memory_bus_width: int = 0
    pci_domain_id: int = 0
    pci_bus_id: int = 0
    pci_device_id: int = 0
    uuid: str = ""


def _number(device: Any, optional: bool = False) -> int:
    """Returns a device's number, as PyTorch's function does that this asks; torch.ahbm's devices are the same ones.

    Raises:
        ValueError: it is the host, or has no number and is not optional.
    """
    device = torch.device(device) if isinstance(device, str) else device
    if isinstance(device, torch.device) and places.is_simulated(device):
        device = torch.device("cuda") if device.index is None else torch.device("cuda", device.index)
    return int(torch.cuda._utils._get_device_index(device, optional=optional))


def properties(device: Any = None) -> Properties:
    """Returns what a device is; all of a topology are alike but for their number, and their place in the node.

    Raises:
        AssertionError: there is no such device.
        ValueError: it is the host.
    """
    number = _number(device, optional=True)
    if not 0 <= number < visible.count():
        raise AssertionError("Invalid device id")
    return in_node(visible.in_node(context(), number))


def in_node(number: int) -> Properties:
    """Returns what a device is, by its number in the running rank's node."""
    known, node = of_running_rank(), context().node
    shared = known["shared_memory_per_block"]
    return Properties(
        **known,
        shared_memory_per_multiprocessor=shared,
        shared_memory_per_block_optin=shared,
        pci_bus_id=number,
        uuid=str(uuid.UUID(int=number if node is None else node[number])),
    )


def set_device(device: Any) -> None:
    """Makes a device the current one of the running thread; a negative number leaves it as it is.

    Raises:
        AcceleratorError: there is no such device.
        ValueError: it is the host, or has no number.
    """
    _choose(_number(device))


def _set_index(index: int) -> None:
    if index >= 0:
        context().device = places.found(torch.device("cuda", index)).number


def _choose(index: int) -> None:
    """Makes a device the current one because the program says so."""
    named.note_current()
    _set_index(index)


def _exchange(index: int) -> int:
    """Makes a device the current one, unless the number is negative, and returns the one before."""
    before = current_device()
    _choose(index)
    return before if index >= 0 else -1


def current_device() -> int:
    """Returns the number of the current device."""
    visible.settle()
    return context().device


def refused(name: str, why: str) -> Callable[..., NoReturn]:
    """Makes a function that refuses, in a line, what simulated devices do not do."""

    def refuse(*_: Any, **__: Any) -> NoReturn:
        raise RuntimeError(f"{name}: {why}")

    return refuse


def _ranges() -> dict[str, Callable[..., Any]]:
    """torch.cuda.nvtx: how deep ranges are nested, and nothing else."""
    depth = [0]

    def push(message: str = "", *_: Any, **__: Any) -> int:
        depth[0] += 1
        return depth[0] - 1

    def pop() -> int:
        depth[0] -= 1
        return depth[0]

    return {
        "range_push": push,
        "range_pop": pop,
        "range_start": lambda *_: 0,
        "range_end": lambda *_: None,
        "mark": lambda *_: None,
    }


def _sleep(cycles: int) -> None:
    """torch.cuda._sleep: keeps the current stream busy for so many nanoseconds, and takes nothing from others."""
    launches.current().add("sleep", 0, cycles * 1000, "idle")


def _memory_info(device: Any = None) -> tuple[int, int]:
    return memory.info(device)


def _seed_all(seed: int) -> None:
    for number in range(visible.count()):
        generators.default(number).manual_seed(seed)


def _set_stream(stream_id: int, device_index: int, device_type: int) -> None:
    """Makes the rank's stream of a number the current one, and its device the current one."""
    _set_index(device_index)
    streams.set_stream(streams.numbered(stream_id))


def _index(device: Any) -> int:
    meant = places.meant("cuda" if device is None else device)
    return current_device() if meant is None or meant.index is None else meant.index


def _random() -> dict[str, Callable[..., Any]]:
    """The functions about generators."""

    def states() -> list[torch.Tensor]:
        return [generators.default(i).get_state() for i in range(visible.count())]

    def set_states(new: Any) -> None:
        for number, state in enumerate(new):
            generators.default(number).set_state(state)

    def seed() -> None:
        generators.default(context().device).seed()

    def seed_all() -> None:
        _seed_all(generators.default(context().device).seed())

    def manual_seed(seed: int) -> None:
        if visible.may_change():  # and, with it, which device is the current one at the first use
            _seed_all(int(seed))
        else:
            generators.default(context().device).manual_seed(int(seed))

    return {
        "manual_seed": manual_seed,
        "manual_seed_all": lambda seed: _seed_all(int(seed)),
        "seed": seed,
        "seed_all": seed_all,
        "initial_seed": initialization.before(lambda: generators.default(current_device()).initial_seed()),
        "get_rng_state": initialization.before(lambda device="cuda": generators.default(_index(device)).get_state()),
        "set_rng_state": lambda state, device="cuda": generators.default(_index(device)).set_state(state) and None,
        "get_rng_state_all": initialization.before(states),
        "set_rng_state_all": set_states,
    }


_ARCHITECTURE = "sm_{}{}".format(*CAPABILITY)


def _is_available() -> bool:
    return visible.count() > 0


def _yes(*_: Any, **__: Any) -> bool:
    return True


def _no(*_: Any, **__: Any) -> bool:
    return False


def _nothing(*_: Any, **__: Any) -> None:
    """Does nothing."""


def put(replaced: Replacements) -> None:
    """Puts all of it in place."""
    _put_below(replaced)
    _put_devices(replaced)
    _put_streams(replaced)
    _put_memory(replaced)
    _put_graphs(replaced)
    random = _random()
    replaced.put_all(torch.cuda.random, random)
    replaced.put_all(torch.cuda, {**random, "default_generators": generators.Defaults()})
    replaced.put_all(torch.cuda.nvtx, _ranges())
    replaced.put(torch, "Generator", generators.Generator)
    replaced.put(torch.backends.cudnn, "is_acceptable", _no)
    _put_accelerator(replaced)
    legacy.put(replaced)
    cudart.put(replaced)


def _put_below(replaced: Replacements) -> None:
    """Puts what torch.cuda asks PyTorch's C++ in place."""
    replaced.put_all(
        torch._C,
        {
            "_cuda_getDevice": current_device,
            "_cuda_setDevice": _choose,
            "_cuda_exchangeDevice": _exchange,
            "_cuda_maybeExchangeDevice": _exchange,
            "_cuda_getDeviceCount": visible.count,
            "_cuda_setStream": _set_stream,
            "_cuda_synchronize": streams.synchronize,
            "_cuda_memoryStats": memory.stats,
            "_cuda_resetPeakMemoryStats": initialization.before(memory.reset_peak),
            "_cuda_resetAccumulatedMemoryStats": memory.reset_accumulated,
            "_cuda_emptyCache": _nothing,
            "_cuda_setMemoryFraction": memory.set_fraction,
            "_cuda_getMemoryFraction": memory.fraction,
            "_cuda_getCompiledVersion": lambda: 0,
            "_cuda_getArchFlags": lambda: _ARCHITECTURE,
            "_cuda_isInBadFork": initialization.is_in_bad_fork,
            "_cuda_init": initialization.begin,
            "_cuda_ipc_collect": _nothing,
            "_cuda_isCurrentStreamCapturing": graphs.is_capturing,
            "_cuda_memorySnapshot": memory.snapshot,
            "_cuda_record_memory_history": _nothing,
            "_cuda_sleep": _sleep,
            "_host_emptyCache": _nothing,
        },
    )


def _put_devices(replaced: Replacements) -> None:
    """Puts torch.cuda's functions about devices in place."""
    replaced.put_all(
        torch.cuda,
        {
            "is_available": _is_available,
            "device_count": visible.count,
            "_device_count_nvml": visible.count,
            "_initialized": True,  # for PyTorch's own code: nothing is to be initialized
            "is_initialized": initialization.is_initialized,
            "_is_in_bad_fork": initialization.is_in_bad_fork,
            "init": initialization.begin,
            "_lazy_init": initialization.begin,
            "current_device": initialization.before(current_device),
            "set_device": initialization.before(set_device),
            "_exchange_device": initialization.before(_exchange),
            "_maybe_exchange_device": initialization.before(_exchange),
            "get_device_properties": initialization.before(properties),
            "get_device_name": initialization.before(lambda device=None: properties(device).name),
            "get_device_capability": lambda device=None: CAPABILITY,
            "get_arch_list": lambda: [_ARCHITECTURE],
            "is_bf16_supported": initialization.before(_yes),
            "is_tf32_supported": _no,
            "can_device_access_peer": initialization.before(lambda device, peer: _index(device) != _index(peer)),
            "get_sync_debug_mode": lambda: 0,
            "set_sync_debug_mode": _nothing,
        },
    )


def _put_streams(replaced: Replacements) -> None:
    """Puts streams and events in place."""
    replaced.put_all(
        torch.cuda,
        {
            "Stream": streams.Stream,
            "ExternalStream": streams.Stream,
            "Event": streams.Event,
            "current_stream": streams.current_stream,
            "default_stream": streams.default_stream,
            "set_stream": streams.set_stream,
            "synchronize": initialization.before(streams.synchronize),
        },
    )
    replaced.put_all(torch.cuda.streams, {"Stream": streams.Stream, "Event": streams.Event})
    replaced.put_all(torch, {"Stream": streams.Stream, "Event": streams.DeviceEvent})
    copying: RankTable[int, Any] = RankTable(lambda: defaultdict(lambda: None))  # by the number of the device
    replaced.put(torch.nn.parallel._functions, "_streams", copying)


def _put_memory(replaced: Replacements) -> None:
    """Puts what torch.cuda says of memory in place, and refusals of what looks into an allocator."""
    info, collect = initialization.before(_memory_info), initialization.before(_nothing)
    replaced.put_all(torch.cuda, {"empty_cache": _nothing, "ipc_collect": collect, "mem_get_info": info})
    known = {"_lazy_init": initialization.begin, "is_initialized": initialization.is_initialized}
    replaced.put_all(torch.cuda.memory, {"mem_get_info": info, **known})
    for module in (torch.cuda, torch.cuda.memory):
        replaced.put_all(module, {"MemPool": memory.Pool, "use_mem_pool": memory.use_pool})
    names = ("caching_allocator_alloc", "caching_allocator_delete")
    for module in (torch.cuda, torch.cuda.memory):
        for name in filter(functools.partial(hasattr, module), names):
            why = "a simulated device's memory has no allocator"
            replaced.put(module, name, refused(f"torch.cuda.{name}", why))


def _put_graphs(replaced: Replacements) -> None:
    """Puts graphs in place."""
    names = {"is_current_stream_capturing": graphs.is_capturing, "CUDAGraph": graphs.CUDAGraph}
    for module in (torch.cuda, torch.cuda.graphs):
        replaced.put_all(module, {**names, "graph_pool_handle": lambda: (0, 0)})
    for name in filter(functools.partial(hasattr, torch.cuda.graphs), graphs.GLOBAL_HOOKS):
        replaced.put(torch.cuda.graphs, name, RankTable())
    if hasattr(torch.accelerator, "Graph"):
        for module in (torch.accelerator, torch.accelerator.graphs):
            replaced.put(module, "Graph", graphs.AcceleratorGraph)
    replaced.put(torch.cuda.graphs.graph, "__init__", _with_own_stream(torch.cuda.graphs.graph.__init__))


def _with_own_stream(initialize: Callable[..., None]) -> Callable[..., None]:
    """Returns an __init__ of torch.cuda.graph by which the stream, where none is given, is the rank's own."""

    def init(self: Any, cuda_graph: Any, pool: Any = None, stream: Any = None, *args: Any, **kwargs: Any) -> None:
        initialize(self, cuda_graph, pool, streams.Stream() if stream is None else stream, *args, **kwargs)

    return init


def _put_accelerator(replaced: Replacements) -> None:
    """Puts what torch.accelerator stands on in place."""
    where = torch.device("cuda")
    found: Any = lambda *_: where  # noqa: E731
    replaced.put_all(
        torch._C,
        {
            "_get_accelerator": found,
            "_accelerator_getAccelerator": found,
            "_accelerator_getDeviceIndex": initialization.before(current_device),
            "_accelerator_setDeviceIndex": initialization.before(_choose),
            "_accelerator_getStream": streams.current_stream,
            "_accelerator_setStream": streams.set_stream,
            "_accelerator_synchronizeDevice": initialization.before(streams.synchronize),
            "_accelerator_exchangeDevice": _exchange,
            "_accelerator_maybeExchangeDevice": _exchange,
            "_accelerator_getDeviceStats": memory.stats,
            "_accelerator_resetPeakStats": memory.reset_peak,
            "_accelerator_resetAccumulatedStats": memory.reset_accumulated,
            "_accelerator_emptyCache": lambda *_: None,
            "_accelerator_getMemoryInfo": _memory_info,
            "_accelerator_isAllocatorInitialized": lambda: True,
        },
    )
    replaced.put_all(
        torch.accelerator,
        {
            "is_available": _is_available,
            "device_count": visible.count,
            "current_accelerator": lambda check_available=False: where,
            "get_device_capability": lambda device=None: {"supported_dtypes": set()},
        },
    )
