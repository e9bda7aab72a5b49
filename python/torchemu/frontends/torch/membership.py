"""The common part of a process group's ranks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch.distributed as dist
from torch.distributed import distributed_c10d as c10d

from torchemu import runtime
from torchemu.bridge.binding import go
from torchemu.runtime import footprints, group_makers
from torchemu.runtime.rank_local import RankLocal


@dataclass(frozen=True)
class Membership:
    """A group of the core.

    Attributes:
        handle: of the core's group.
        device_handle: of the core's group for tensors of devices, another one where backends differ by devices.
        name: what reports call it.
        members: World ranks, by group rank.
        maker, site: the rank that came first, and from where.
        key: by which the members find it.
        left: the members that have left the group.
        late: the group ranks of members that know of an operation that has lasted too long.
        told: what members have said of their calls, by the number of the meeting and the group rank; see detailed.
    """

    handle: int
    device_handle: int
    name: str
    members: tuple[int, ...]
    maker: int
    site: str
    key: object
    left: set[int] = field(default_factory=set)
    late: set[int] = field(default_factory=set)
    told: dict[int, dict[int, Any]] = field(default_factory=dict)


_made: RankLocal[Counter[object]] = RankLocal(Counter)  # how often this rank has made a group of a name and an era

_agreed: RankLocal[Counter[object]] = RankLocal(Counter)  # the same of the groups that all make

_era: RankLocal[list[object]] = RankLocal(list)  # the key of the default group: names count anew with each

_world_ranks: RankLocal[list[int]] = RankLocal(list)  # by rank of the default group; empty where they are the same


def agree(name: str, ranks: Sequence[int]) -> None:
    """Compares the members of a group that all ranks of the default group make, this one in it or not.

    Args:
        name: of the group; a name may be used again once a group is destroyed.
        ranks: of the default group.

    Raises:
        MismatchError: ranks disagree on its members.
    """
    context, mapped, era = runtime.current(), _world_ranks.get(), _era.get()
    if context.tasks is None or not era:
        return
    agreed, about = _agreed.get(), (name, *era)
    agreed[about] += 1
    members = tuple(mapped[r] for r in ranks) if mapped else tuple(ranks)
    of = mapped or range(c10d._world.default_pg.size())
    group_makers.note_call((*about, agreed[about]), name, members, of)


def shared(name: str, ranks: Sequence[int], are_world_ranks: bool = False, is_parted: bool = False) -> Membership:
    """The group that this rank and the others make of a name; the first one makes the core's.

    Args:
        name: of the group; a name may be used again once a group is destroyed.
        ranks: of the default group.
        are_world_ranks: they are the World's.
        is_parted: operations on tensors of devices have an order of their own, as with a backend of their own.

    Raises:
        MismatchError: ranks disagree on its members.
    """
    context = runtime.current()
    mapped = _world_ranks.get()
    members = tuple(mapped[r] for r in ranks) if mapped and not are_world_ranks else tuple(ranks)
    made, about = _made.get(), (name, *_era.get())
    made[about] += 1
    kept = context.own if context.tasks is None else context.tasks.shared
    key = (Membership, *about, made[about], context.rank if len(members) == 1 else min(members))
    footprints.use(key, hash(members) | 1)
    found = kept.get(key)
    if found is None:
        number = int(name) if name.isdecimal() and len(name) < 10 else len(kept)
        handle = go.NewGroup(context.world.handle, number, name, members)
        found = kept[key] = Membership(handle, handle, name, members, context.rank, runtime.call_site(), key)
        if is_parted:
            other = go.NewGroup(context.world.handle, number, name, members)
            found = kept[key] = kept[Membership, other] = replace(found, device_handle=other)
    if found.members != members:
        raise group_makers.disagreement(name, (found.maker, found.members, found.site), members)
    return found


def default(name: str, store: dist.Store, rank: int, size: int, is_parted: bool = False) -> Membership:
    """The default group that this rank and the others make: see shared and of_default_group."""
    era = _era.get()
    era.clear()
    ranks = of_default_group(store, rank, size)
    if _world_ranks.get():  # they may have made others before, and not all of them as many
        if rank == 0:
            store.set("torchemu/made", str(_made.get()[name,]))
        _made.get()[name,] = int(store.get("torchemu/made"))
    made = shared(name, ranks, is_parted=is_parted)
    era.append(made.key)
    return made


def leave(of: Membership) -> None:
    """Notes that the running rank has left a group. The core forgets a group that all have left."""
    context = runtime.current()
    footprints.use(of.key)
    of.left.add(context.rank)
    kept = context.own if context.tasks is None else context.tasks.shared
    if len(of.left) == len(of.members) and kept.get(of.key) is of:
        kept[of.key] = None  # it still counts for the numbers of others
        group_makers.forget(of.handle)
        for handle in {of.handle, of.device_handle}:
            go.DropGroup(handle)


def of_default_group(store: dist.Store, rank: int, size: int) -> range:
    """The ranks of the default group, after it has been found out which World ranks they are.

    Args:
        store: one that they share.
        rank: this one's in the group.
        size: how many there are.

    Raises:
        NotImplementedError: a program and processes that it has started are among them.
    """
    context = runtime.current()
    known = _world_ranks.get()
    known.clear()
    tasks = context.tasks
    if tasks is None or (rank, size, False) != (context.rank, tasks.nprocs, tasks.is_beside):
        known.extend(met(store, rank, size))
        if len({*known}) < size:
            raise NotImplementedError(
                "a process group of a program and processes that it has started is not supported: let the program "
                "start all ranks, or torchemu run --nproc-per-node"
            )
    return range(size)


def met(store: dist.Store, rank: int, size: int) -> list[int]:
    """The World ranks of those who share a store, by their numbers there; see of_default_group."""
    store.set(f"torchemu/{rank}", str(runtime.current().rank))
    return [int(store.get(f"torchemu/{r}")) for r in range(size)]
