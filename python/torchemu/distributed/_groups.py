"""Process groups, and how a rank comes by its default one."""

from __future__ import annotations

from typing import Any

from torchemu import _runtime
from torchemu._binding import go

BACKENDS = ("ahbm", "nccl", "gloo")
"""The backend names that are accepted. All are the emulated fabric."""


class ProcessGroup:
    """The ranks that meet in collectives: one for each SIP, or, where the world size says otherwise, the shards that a
    single worker's tensors have on the PEs of one SIP."""

    def __init__(self, world: _runtime.World, size: int, sharded: bool) -> None:
        self.world, self._size, self.sharded = world, size, sharded
        if sharded:
            self.handle = go.NewShardGroup(world.handle, size)
        else:
            self.handle = go.NewGroup(world.handle, 0, "default", ",".join(map(str, range(size))))

    def size(self) -> int:
        """The number of ranks."""
        return self._size

    def rank(self) -> int:
        """This rank's number in the group; a single worker is 0."""
        return 0 if self.sharded else _runtime.current().rank


def is_available() -> bool:
    """Always true."""
    return True


def is_initialized() -> bool:
    """Whether this rank has a default process group."""
    context = _runtime.current()
    return (context.group or context.inherited) is not None


def init_process_group(
    backend: str | None = None,
    init_method: str | None = None,
    timeout: Any = None,
    world_size: int = -1,
    rank: int = -1,
    store: Any = None,
    group_name: str = "",
    pg_options: Any = None,
    device_id: Any = None,
) -> None:
    """Makes the default process group. Only backend, world_size and rank mean something here: there is one machine.

    Outside of spawn the world size comes from ccl.yaml, or else is the number of SIPs. Where it is the number of SIPs
    there is one rank for each, to be spawned; spawned ranks have the group of the program that spawned them, and may
    also make their own. Any other world size is a single worker whose tensors are sharded over the PEs of a SIP.

    Raises:
        AssertionError: unknown backend.
        ValueError: there is a default group already, or rank or world_size are not this rank's.
    """
    context = _runtime.current()
    if context.group is not None:
        raise ValueError("trying to initialize the default process group twice!")
    if (backend or "ahbm").lower() not in BACKENDS:
        raise AssertionError(f"Unknown backend type {backend}; choose one of {', '.join(BACKENDS)}")
    if context.tasks is None:
        context.group = _group_of_main(context, world_size, rank)
    else:
        context.group = _group_of_spawned(context, world_size, rank)


def _group_of_main(context: _runtime.Context, world_size: int, rank: int) -> ProcessGroup:
    world = context.world
    size = world.world_size if world_size == -1 else world_size
    if rank not in (-1, 0):
        raise ValueError(f"rank {rank} must be started by spawn; the program that spawns is rank 0")
    return ProcessGroup(world, size, sharded=size != world.sips)


def _group_of_spawned(context: _runtime.Context, world_size: int, rank: int) -> ProcessGroup:
    tasks = context.tasks
    assert tasks is not None
    if world_size not in (-1, tasks.nprocs):
        raise ValueError(f"world_size {world_size} is not the number of spawned processes, {tasks.nprocs}")
    if rank not in (-1, context.rank):
        raise ValueError(f"rank {rank} was given by the process that was spawned as rank {context.rank}")
    if tasks.group is None:
        tasks.group = ProcessGroup(context.world, tasks.nprocs, sharded=False)
    return tasks.group


def destroy_process_group(group: ProcessGroup | None = None) -> None:
    """Ends this rank's default process group; collectives then need a new one."""
    resolve(group)
    context = _runtime.current()
    context.group = context.inherited = None


def get_rank(group: ProcessGroup | None = None) -> int:
    """This rank's number in the group."""
    return resolve(group).rank()


def get_world_size(group: ProcessGroup | None = None) -> int:
    """The number of ranks of the group."""
    return resolve(group).size()


def get_backend(group: ProcessGroup | None = None) -> str:
    """The name of the backend."""
    resolve(group)
    return BACKENDS[0]


def resolve(group: ProcessGroup | None) -> ProcessGroup:
    """The group, or the default one."""
    context = _runtime.current()
    default = context.group or context.inherited
    if default is None:
        raise ValueError("Default process group has not been initialized, please make sure to call init_process_group.")
    if group is not None and not isinstance(group, ProcessGroup):
        raise TypeError(f"group must be a ProcessGroup, not {type(group).__name__}")
    return group or default
