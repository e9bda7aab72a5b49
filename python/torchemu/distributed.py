"""torch.distributed, on the simulated fabric."""

from __future__ import annotations

import enum
from typing import Any

from torchemu import _handles, _runtime
from torchemu._binding import go
from torchemu._tensor import Tensor

BACKENDS = ("ahbm", "nccl", "gloo")
"""The backend names that are accepted. All are the emulated fabric."""


class ReduceOp(enum.Enum):
    """How all_reduce and its kin combine elements."""

    SUM = "sum"
    AVG = "avg"
    PRODUCT = "product"
    MIN = "min"
    MAX = "max"
    BAND = "band"
    BOR = "bor"
    BXOR = "bxor"


class Work:
    """A collective that a rank has issued."""

    def __init__(self, world: _runtime.World, handle: int) -> None:
        self._handle = handle
        _handles.hold(self, world, handle)

    def wait(self, timeout: Any = None) -> bool:
        """Waits until this rank's part has ended; returns True."""
        _runtime.current().wait(self._handle)
        return True

    def is_completed(self) -> bool:
        """Whether this rank's part has ended by the present simulated time."""
        return go.IsDone(self._handle)


class ProcessGroup:
    """The ranks that meet in collectives: one for each SIP, or, where the world size says otherwise, the shards that a
    single worker's tensors have on the PEs of one SIP."""

    def __init__(self, world: _runtime.World, size: int, sharded: bool) -> None:
        self.world, self._size, self.sharded = world, size, sharded
        if sharded:
            self.handle = go.NewShardGroup(world.handle, size)
        else:
            self.handle = go.NewGroup(world.handle, 0, ",".join(map(str, range(size))))

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
    _resolve(group)
    context = _runtime.current()
    context.group = context.inherited = None


def get_rank(group: ProcessGroup | None = None) -> int:
    """This rank's number in the group."""
    return _resolve(group).rank()


def get_world_size(group: ProcessGroup | None = None) -> int:
    """The number of ranks of the group."""
    return _resolve(group).size()


def get_backend(group: ProcessGroup | None = None) -> str:
    """The name of the backend."""
    _resolve(group)
    return BACKENDS[0]


def _resolve(group: ProcessGroup | None) -> ProcessGroup:
    """The group, or the default one."""
    context = _runtime.current()
    default = context.group or context.inherited
    if default is None:
        raise ValueError("Default process group has not been initialized, please make sure to call init_process_group.")
    if group is not None and not isinstance(group, ProcessGroup):
        raise TypeError(f"group must be a ProcessGroup, not {type(group).__name__}")
    return group or default


def all_reduce(
    tensor: Tensor, op: ReduceOp | str = ReduceOp.SUM, group: ProcessGroup | None = None, async_op: bool = False
) -> Work | None:
    """Replaces the tensor on every rank by the reduction over all ranks.

    The call returns when the operation is issued; whatever reads the tensor waits for it. A single worker's tensor is
    reduced over its shards, each of which receives the result.

    Args:
        tensor: the same shape and dtype on every rank.
        op: a ReduceOp or its name. Bitwise ones need integers or bool.
        group: the ranks; None is the default group.
        async_op: return a Work to wait for.

    Raises:
        TypeError: tensor is not a tensor.
        ValueError: no process group; unknown op; an op that the dtype has not; the tensor is on another device than
            the rank; the number of shards is not the world size.
        MismatchError: another rank called something that does not fit.
    """
    group, name = _resolve(group), _op_name(op)
    _check(group, tensor=tensor)
    if group.sharded:
        return _issued(group, go.AllReduceShards(group.handle, tensor._handle, name), async_op)
    return _issued(group, go.AllReduce(group.handle, group.rank(), tensor._handle, name), async_op)


def all_gather_into_tensor(
    output_tensor: Tensor, input_tensor: Tensor, group: ProcessGroup | None = None, async_op: bool = False
) -> Work | None:
    """Fills output_tensor, on every rank, with all ranks' input_tensor, in rank order.

    Args:
        output_tensor: world_size times the elements of input_tensor, of the same dtype.
        input_tensor: the same size and dtype on every rank.
        group, async_op: as for all_reduce.

    Raises:
        as all_reduce does; ValueError also when the sizes do not fit.
    """
    group = _resolve(group)
    _check(group, output_tensor=output_tensor, input_tensor=input_tensor)
    if group.sharded:
        work = go.AllGatherShards(group.handle, output_tensor._handle, input_tensor._handle)
    else:
        work = go.AllGatherIntoTensor(group.handle, group.rank(), output_tensor._handle, input_tensor._handle)
    return _issued(group, work, async_op)


def reduce_scatter_tensor(
    output: Tensor,
    input: Tensor,  # noqa: A002 (PyTorch's name)
    op: ReduceOp | str = ReduceOp.SUM,
    group: ProcessGroup | None = None,
    async_op: bool = False,
) -> Work | None:
    """Gives rank r, in output, block r of the reduction of all ranks' input.

    Args:
        output: the elements of input divided by world_size, of the same dtype.
        input: the same size and dtype on every rank.
        op, group, async_op: as for all_reduce.

    Raises:
        as all_reduce does; ValueError also when the sizes do not fit. NotImplementedError for a single worker.
    """
    group, name = _resolve(group), _op_name(op)
    _check(group, output=output, input=input)
    if group.sharded:
        raise NotImplementedError("reduce_scatter_tensor over the shards of a single worker is not supported")
    return _issued(
        group, go.ReduceScatterTensor(group.handle, group.rank(), output._handle, input._handle, name), async_op
    )


def _op_name(op: ReduceOp | str) -> str:
    if isinstance(op, ReduceOp):
        return op.value
    if isinstance(op, str):
        return op
    raise TypeError(f"op must be a ReduceOp or its name, not {op!r}")


def _check(group: ProcessGroup, **tensors: Tensor) -> None:
    context = _runtime.current()
    for parameter, t in tensors.items():
        if not isinstance(t, Tensor):
            raise TypeError(
                f"Invalid function argument. Expected parameter `{parameter}` of type torch.Tensor\n"
                f"             but got {type(t)} instead."
            )
        if t.world is not group.world:
            raise RuntimeError(f"`{parameter}` belongs to another World than the process group")
        if not group.sharded and t.device != context.rank:
            raise ValueError(
                f"`{parameter}` is on device {t.device}, but rank {context.rank} of this group is on device "
                f"{context.rank}; call torch.ahbm.set_device({context.rank}) before making it"
            )


def _issued(group: ProcessGroup, handle: int, async_op: bool) -> Work | None:
    work = Work(group.world, handle)
    return work if async_op else None
