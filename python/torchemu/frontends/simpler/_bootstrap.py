"""Windows that chips have from a Worker's init on, as of drivers before orch.allocate_domain.

A driver says of each chip what its window has, and which of it comes from shared memory of the host's before the first
task and goes back there after each run.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from multiprocessing.shared_memory import SharedMemory
from typing import cast

import numpy as np

from torchemu.frontends.simpler import _domains
from torchemu.frontends.simpler._memory import ChipMemory, DomainMemory

_NAME = "bootstrap"


@dataclass
class ChipBufferSpec(_domains.CommBufferSpec):
    """A named part of a chip's window, which ChipContext.buffer_ptrs knows by its name.

    Attributes:
        load_from_host: it begins with the bytes of the chip's host_inputs of its name.
        store_to_host: each run ends with copying it to the chip's host_outputs of its name.
        placement: "window", the only one that there is.
    """

    placement: str = "window"


@dataclass
class HostBufferStaging:
    """Shared memory of the host's for a buffer.

    Attributes:
        name: the buffer's.
        shm_name: of a multiprocessing.shared_memory.SharedMemory.
        size: bytes, as many as the buffer has.
    """

    name: str
    shm_name: str
    size: int


@dataclass
class ChipCommBootstrapConfig:
    """The place of a chip in the domain of all of them.

    Attributes:
        rank, nranks: its number there, and how many they are.
        rootinfo_path: without effect.
        window_size: bytes of its window.
        win_sync_prefix: bytes at its begin that buffers leave free.
    """

    rank: int
    nranks: int
    rootinfo_path: str
    window_size: int
    win_sync_prefix: int = 0


@dataclass
class ChipBootstrapConfig:
    """The window of one chip, for Worker(chip_bootstrap_configs=[…]).

    Attributes:
        comm: its place in the domain; None for a chip without a window.
        buffers: the parts of its window.
        host_inputs, host_outputs: shared memory for those that say load_from_host or store_to_host.
    """

    comm: ChipCommBootstrapConfig | None = None
    buffers: list[ChipBufferSpec] = field(default_factory=list)
    host_inputs: list[HostBufferStaging] = field(default_factory=list)
    host_outputs: list[HostBufferStaging] = field(default_factory=list)

    def input_staging(self, name: str) -> HostBufferStaging:
        """The shared memory that a buffer begins with.

        Raises:
            KeyError: there is none for it.
        """
        return _staging(self.host_inputs, name, "host_inputs")

    def output_staging(self, name: str) -> HostBufferStaging:
        """The shared memory that a buffer is copied to.

        Raises:
            KeyError: there is none for it.
        """
        return _staging(self.host_outputs, name, "host_outputs")


@dataclass(frozen=True)
class ChipContext:
    """A chip's window as it is, of Worker.chip_contexts.

    Attributes:
        bootstrap_config: what it was made of.
        device_id: the chip's SIP.
        worker_index: the number that tasks know the chip by.
        rank, nranks: its number in the domain, and how many they are.
        device_ctx: the address of the CommContext that its kernels get.
        local_window_base, actual_window_size: where its window is, and how long.
        buffer_ptrs: the addresses of its buffers, by name.
    """

    bootstrap_config: ChipBootstrapConfig
    device_id: int
    worker_index: int
    rank: int
    nranks: int
    device_ctx: int
    local_window_base: int
    actual_window_size: int
    buffer_ptrs: dict[str, int]


def check(configs: Sequence[ChipBootstrapConfig], chips: int) -> None:
    """Checks what the chips' windows are to be made of.

    Raises:
        ValueError: there is not one config for each chip; their ranks are not 0, 1, …, or their nranks or window sizes
            differ; a buffer is not in the window, or has no shared memory of its size where it is to have some.
    """
    said = "chip_bootstrap_configs"
    if len(configs) != chips:
        raise ValueError(f"{said}: {len(configs)} for {chips} device_ids; want one for each")
    comms = [config.comm for config in configs if config.comm is not None]
    if sorted(comm.rank for comm in comms) != list(range(len(comms))):
        raise ValueError(f"{said}: ranks {[comm.rank for comm in comms]}; want 0 to {len(comms) - 1}, each once")
    if any(comm.nranks != len(comms) for comm in comms):
        raise ValueError(f"{said}: nranks {[comm.nranks for comm in comms]} of {len(comms)} chips with a window")
    if len({comm.window_size for comm in comms}) > 1:
        raise ValueError(f"{said}: windows of {[comm.window_size for comm in comms]} bytes; want them equal")
    for chip, config in enumerate(configs):
        _check_buffers(f"{said}[{chip}]", config)


def _check_buffers(said: str, config: ChipBootstrapConfig) -> None:
    if config.comm is None and config.buffers:
        raise ValueError(f"{said}: buffers without comm, which is what a chip has its window from")
    names = [buffer.name for buffer in config.buffers]
    if len(set(names)) != len(names):
        raise ValueError(f"{said}: buffers {names} names one twice")
    for buffer in config.buffers:
        if buffer.placement != "window":
            raise ValueError(f"{said}: buffer {buffer.name!r} is placed in {buffer.placement!r}; want 'window'")
        for wanted, staging in ((buffer.load_from_host, "input"), (buffer.store_to_host, "output")):
            if wanted:
                found = _staging(getattr(config, f"host_{staging}s"), buffer.name, f"{said}: host_{staging}s")
                if found.size != buffer.nbytes:
                    raise ValueError(
                        f"{said}: {found.size} bytes of shared memory for buffer {buffer.name!r} of {buffer.nbytes}"
                    )
    comm = config.comm
    needed = sum(buffer.nbytes for buffer in config.buffers)
    if comm is not None and not 0 <= needed <= comm.window_size - comm.win_sync_prefix:
        sizes = [buffer.nbytes for buffer in config.buffers]
        raise ValueError(f"{said}: buffers of {sizes} bytes in a window of {comm.window_size}")


def _staging(stagings: Sequence[HostBufferStaging], name: str, where: str) -> HostBufferStaging:
    for staging in stagings:
        if staging.name == name:
            return staging
    raise KeyError(f"{where}: nothing for buffer {name!r}")


class Bootstrapped:
    """The windows of a Worker's chips, from init to close.

    Args:
        configs: of each chip, checked.
        memory: the chips'.
        device_ids: their SIPs.

    Attributes:
        contexts: what the driver sees of each.
    """

    def __init__(self, configs: Sequence[ChipBootstrapConfig], memory: ChipMemory, device_ids: Sequence[int]) -> None:
        self._memory = memory
        members = sorted(
            (chip for chip, config in enumerate(configs) if config.comm is not None), key=lambda c: _rank(configs[c])
        )
        self._domain = self._allocated(configs, members)
        self.contexts = [self._context(config, chip, device_ids[chip], members) for chip, config in enumerate(configs)]
        for context in self.contexts:
            for buffer in context.bootstrap_config.buffers:
                if buffer.load_from_host:
                    self._load(context, buffer)

    def _allocated(self, configs: Sequence[ChipBootstrapConfig], members: Sequence[int]) -> DomainMemory | None:
        comm = configs[members[0]].comm if members else None
        return None if comm is None else self._memory.allocate_domain(_NAME, members, comm.window_size)

    def _context(self, config: ChipBootstrapConfig, chip: int, device: int, members: Sequence[int]) -> ChipContext:
        comm, domain = config.comm, self._domain
        if comm is None or domain is None:
            return ChipContext(config, device, chip, 0, 0, 0, 0, 0, {})
        base = domain.bases[comm.rank]
        return ChipContext(
            bootstrap_config=config,
            device_id=device,
            worker_index=chip,
            rank=comm.rank,
            nranks=len(members),
            device_ctx=domain.contexts[comm.rank],
            local_window_base=base,
            actual_window_size=comm.window_size,
            buffer_ptrs=_domains.carved(config.buffers, base + comm.win_sync_prefix),
        )

    def _load(self, context: ChipContext, buffer: ChipBufferSpec) -> None:
        staging = context.bootstrap_config.input_staging(buffer.name)
        data = np.frombuffer(_shared(staging, None), np.uint8)
        self._memory.write(context.worker_index, context.buffer_ptrs[buffer.name], data)

    def store(self) -> None:
        """Copies what is to be in shared memory after a run."""
        for context in self.contexts:
            for buffer in context.bootstrap_config.buffers:
                if buffer.store_to_host:
                    data = np.empty(buffer.nbytes, np.uint8)
                    self._memory.read(context.worker_index, context.buffer_ptrs[buffer.name], data)
                    _shared(context.bootstrap_config.output_staging(buffer.name), data.tobytes())


def _shared(staging: HostBufferStaging, written: bytes | None) -> bytes:
    """The bytes of shared memory, which are written before."""
    shared = SharedMemory(staging.shm_name)
    try:
        place = cast("memoryview", shared.buf)
        if written is not None:
            place[: staging.size] = written
        return bytes(place[: staging.size])
    finally:
        shared.close()


def _rank(config: ChipBootstrapConfig) -> int:
    return -1 if config.comm is None else config.comm.rank
