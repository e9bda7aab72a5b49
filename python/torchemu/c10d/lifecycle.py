"""A rank comes by its default process group here, and leaves groups."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from torchemu import runtime
from torchemu.bridge.binding import go
from torchemu.c10d import backends
from torchemu.c10d.custom_groups import Plan, is_custom
from torchemu.c10d.group import Group
from torchemu.c10d.groups import current_default, default_group, group_class, is_outside, set_default
from torchemu.c10d.membership import Membership, groups, leave, shared_membership
from torchemu.c10d.rendezvous import rendezvous
from torchemu.c10d.stores import FileStore, PrefixStore, Store

_STORE = "the default store"
"""A name by which ranks find their default store; no file has it."""


def is_initialized() -> bool:
    """Returns whether this rank has a default process group."""
    return current_default() is not None


def init_process_group(
    backend: str | None = None,
    init_method: str | None = None,
    timeout: timedelta | None = None,
    world_size: int = -1,
    rank: int = -1,
    store: Store | None = None,
    group_name: str = "",
    pg_options: Any = None,
    device_id: Any = None,
) -> None:
    """Makes the default process group.

    Outside of spawn the world size comes from ccl.yaml, or else is the number of SIPs. Where it is the number of SIPs
    there is one rank for each, to be spawned; spawned ranks have the group of the program that spawned them, and may
    also make their own. Any other world size is a single worker whose tensors are sharded over the PEs of a SIP.

    Args:
        backend: "ahbm", "nccl", "gloo" or pairs such as "cpu:gloo,cuda:nccl"; all are the emulated fabric. Or what
            the program has registered with Backend.register_backend.
        init_method: a URL by which the ranks find each other; see rendezvous. Without it they know each other.
        timeout: how long an operation may take.
        world_size, rank: need not be given; they must be this rank's.
        store: what the ranks share besides; instead of init_method, and with world_size and rank.
        group_name: means nothing here.
        pg_options: for a backend of the program's own.
        device_id: the device of this rank: kept as bound_device_id.

    Raises:
        AssertionError: unknown backend; store together with init_method or without rank and world_size.
        TypeError: timeout is not a timedelta.
        ValueError: there is a default group already; rank or world_size are not this rank's; the URL lacks something.
    """
    mine = groups.get()
    if current_default() is not None and not mine.inherited:
        raise ValueError("trying to initialize the default process group twice!")
    _check_store(store, init_method, world_size, rank)
    limit = backends.checked_timeout(timeout, backends.Backend(backend or "ahbm"))
    name = backends.checked(backend)
    if init_method is not None:
        store, rank, world_size = next(rendezvous(init_method, rank, world_size, timeout=limit))
        store = PrefixStore("default_pg", store)
    mine.clear()
    if is_custom(name):
        group = _custom_group(runtime.current(), (world_size, rank, name, limit), pg_options, store)
    else:
        group = _default_group_of(runtime.current(), world_size, rank, name)
    group.timeout, group.bound_device_id, group.store = limit, device_id, store
    set_default(group)
    mine.by_name[group.group_name] = group


def _check_store(store: Store | None, init_method: str | None, world_size: int, rank: int) -> None:
    if store is None:
        return
    if init_method is not None:
        raise AssertionError("Cannot specify both init_method and store.")
    if world_size <= 0:
        raise AssertionError("world_size must be positive if using store")
    if rank < 0:
        raise AssertionError("rank must be non-negative if using store")


def _default_group_of(context: runtime.Context, world_size: int, rank: int, backend: str) -> Group:
    find = _membership_of_main if context.tasks is None else _membership_of_spawned
    shared = find(context, world_size, rank)
    mine = groups.get()
    mine.era += 1
    return group_class().over(shared, range(len(shared.members)), mine.next_name(), "default_pg", backend)


def _custom_group(
    context: runtime.Context, asked: tuple[int, int, str, timedelta], options: Any, store: Store | None
) -> Group:
    """The default group that the program's own backend makes. It may have any size: only the backend has to do with it.

    Args:
        asked: world size, rank, backend and timeout, as init_process_group has them.
    """
    world_size, rank, backend, timeout = asked
    if rank == -1:
        rank = context.rank
    if world_size == -1:
        world_size = context.world.world_size if context.tasks is None else context.tasks.nprocs
    first = context.rank - rank  # members of other numbers than their ranks are taken to be next to each other
    members = tuple(range(first, first + world_size))
    mine = groups.get()
    mine.era += 1
    share = PrefixStore("default_pg", FileStore(_STORE)) if store is None else store
    name = mine.next_name()
    return group_class().custom(Plan(backend, rank, members, None, name, "default_pg", timeout, options, share))


def _membership_of_main(context: runtime.Context, world_size: int, rank: int) -> Membership:
    world = context.world
    size = world.world_size if world_size == -1 else world_size
    if rank not in (-1, 0):
        raise ValueError(f"rank {rank} must be started by spawn; the program that spawns is rank 0")
    if size == world.sips:
        return _all_ranks(size)
    return Membership(world, go.NewShardGroup(world.handle, size), tuple(range(size)), sharded=True)


def _membership_of_spawned(context: runtime.Context, world_size: int, rank: int) -> Membership:
    assert context.tasks is not None
    if world_size not in (-1, context.tasks.nprocs):
        raise ValueError(
            f"world_size {world_size} is not the number of processes, {context.tasks.nprocs}: start {world_size} of "
            "them (torchemu run --nproc-per-node, or nprocs of spawn), or give no world_size"
        )
    if rank not in (-1, context.rank):
        raise ValueError(f"rank {rank} was given by the process whose rank is {context.rank}, its number in the run")
    return _all_ranks(context.tasks.nprocs)


def _all_ranks(size: int) -> Membership:
    return shared_membership("0", tuple(range(size)), "default")


def default_store() -> Store:
    """The store that was given to init_process_group, or that it found, or one that the ranks have anyhow.

    Raises:
        ValueError: there is no default group.
    """
    group = default_group()
    if group.store is None:
        group.store = PrefixStore("default_pg", FileStore(_STORE))
    return group.store


def destroy_process_group(group: Group | None = None) -> None:
    """Leaves a group; without one, or with the default one, all groups. Does nothing for a group this rank is not in.

    Raises:
        ValueError: there is no such group.
    """
    if is_outside(group):
        return
    leaving = default_group() if group is None else group
    mine = groups.get()
    if not isinstance(leaving, Group) or mine.by_name.get(leaving.group_name) is not leaving:
        raise ValueError("Invalid process group specified")
    is_default = leaving is current_default()
    for each in list(mine.by_name.values()) if is_default else [leaving]:
        if each.alive and each.hooks is not None:
            each.finish_hooks()
    if is_default:
        mine.clear()
        set_default(None)
    leaving.alive = False
    mine.by_name.pop(leaving.group_name, None)
    if not is_default and leaving.delegate is None and not leaving.sharded:
        leave(leaving.shared)


def abort_process_group(group: Group | None = None) -> None:
    """Leaves a group as destroy_process_group does, and ends what ranks wait for in it with an error."""
    leaving = default_group() if group is None else group
    if isinstance(leaving, Group) and leaving.alive:
        leaving.abort()
    destroy_process_group(group)
