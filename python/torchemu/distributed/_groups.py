"""Process groups, and the numbers of ranks in them."""

from __future__ import annotations

import functools
import sys
import warnings
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from torchemu import _runtime
from torchemu._binding import go
from torchemu._device import ACCELERATORS, CPU, device
from torchemu._rank_local import RankLocal
from torchemu._waiting import picoseconds
from torchemu.distributed import _backends, _flight_files
from torchemu.distributed._group_methods import GroupMethods
from torchemu.distributed._work import FOR_EVER
from torchemu.errors import MismatchError

if TYPE_CHECKING:
    from torchemu._tensor import Tensor
    from torchemu.distributed._coalescing import Collected
    from torchemu.distributed._hooks import Hooks
    from torchemu.distributed.store import Store

NON_GROUP_MEMBER = -100
"""What new_group returns to a rank that is not in the group."""

_NOT_INITIALIZED = "Default process group has not been initialized, please make sure to call init_process_group."


@dataclass(frozen=True)
class Membership:
    """What the ranks of a process group have in common.

    Attributes:
        world: where it is.
        handle: the Go core's group.
        members: numbers in the World, by group rank.
        sharded: the members are the shards that a single worker's tensors have on the PEs of one SIP.
        maker, site: the rank that was the first to make the group, and where.
    """

    world: _runtime.World
    handle: int
    members: tuple[int, ...]
    sharded: bool = False
    maker: int = 0
    site: str = ""

    @functools.cached_property
    def index(self) -> dict[int, int]:
        """Group ranks by numbers in the World: one table for all members, of which there may be thousands."""
        return {member: i for i, member in enumerate(self.members)}


class ProcessGroup(GroupMethods):
    """Ranks that meet in collectives, as one of them knows the group.

    Attributes:
        ranks: the members' numbers in the default group, by group rank.
        group_name: the same on all ranks; the default group is "0".
        group_desc: what the program says it is for.
        backend: the backend's name, as the program gave it.
        takes_devices, takes_hosts: whether that is for tensors on devices, and in hosts' memory.
        coalescing: what a coalescing manager has collected; None outside of one.
        token: what a barrier reduces; None before the first.
        store: what was given to init_process_group, or found; None where nobody asked for it.
        monitored: how many monitored barriers this rank has called.
        hooks: who is told of what this rank issues; None for nobody.
        served: the rank whose tensor was last found to be on a device that the group serves, and that device.
        alive: not destroyed.
    """

    def __init__(self, shared: Membership, ranks: Sequence[int], name: str, description: str, backend: str) -> None:
        self.world, self.handle, self.sharded = shared.world, shared.handle, shared.sharded
        self.shared = shared
        self.index = shared.index
        self.ranks = tuple(ranks)
        self.group_name, self.group_desc, self.backend = name, description, backend
        kinds = _backends.BackendConfig(backend).device_backend_map
        self.takes_hosts = CPU in kinds
        self.takes_devices = any(kind in kinds for kind in ACCELERATORS)
        self._timeout = _backends.default_timeout(backend)
        self._bound_device: Any = None
        self.coalescing: Collected | None = None
        self.token: Tensor | None = None
        self.store: Store | None = None
        self.monitored = 0
        self.hooks: Hooks | None = None
        self.served: tuple[_runtime.Context | None, device | None] = (None, None)
        self.alive = True
        if not self.sharded:
            _flight_files.watch_as_asked_for(self)

    def of_another_rank(self) -> ProcessGroup:
        """The same group as another rank knows it."""
        twin = ProcessGroup(self.shared, self.ranks, self.group_name, self.group_desc, self.backend)
        twin.timeout, twin._bound_device, twin.store = self.timeout, self._bound_device, self.store
        return twin

    @property
    def bound_device_id(self) -> Any:
        """The device that the program bound the group to."""
        return self._bound_device

    @bound_device_id.setter
    def bound_device_id(self, where: Any) -> None:
        if isinstance(where, device) and where.index is None:
            raise RuntimeError("setBoundDeviceId must have an index")
        self._bound_device = where

    def size(self) -> int:
        """The number of ranks."""
        return len(self.ranks)

    def rank(self) -> int:
        """This rank's number in the group; a single worker is 0."""
        return 0 if self.sharded else self.index.get(_runtime.current().rank, -1)

    def name(self) -> str:
        """The name of the backend."""
        return self.backend

    @property
    def timeout(self) -> timedelta:
        """How long an operation may take, in simulated time; then it fails. Where nothing can happen at all any more,
        the deadlock is reported at once."""
        return self._timeout

    @timeout.setter
    def timeout(self, timeout: timedelta) -> None:
        self._timeout = timeout
        self.watch(picoseconds(timeout))

    def set_timeout(self, timeout: timedelta) -> None:
        """Changes how long an operation may take that this rank issues from now on."""
        self.timeout = _backends.checked_timeout(timeout, self.backend)

    def watch(self, limit: int) -> None:
        """Makes what this rank issues from now on fail after so many picoseconds; 0 is never."""
        if not self.sharded:
            go.SetTimeout(self.handle, _runtime.current().rank, limit if 0 < limit < FOR_EVER else 0)

    def get_group_store(self) -> Store:
        """A store that the members share."""
        from torchemu.distributed._lifecycle import default_store
        from torchemu.distributed.store import PrefixStore

        return PrefixStore(self.group_name, default_store())

    def abort(self) -> None:
        """Ends, with an error, what ranks have issued to the group and what waits for this rank to join it, and leaves
        the group."""
        go.AbortGroup(self.handle, _runtime.current().rank)
        self.alive = False

    def shutdown(self) -> None:
        """Leaves the group."""
        self.alive = False


@dataclass
class Groups:
    """The process groups of one rank.

    Attributes:
        by_name: those that this rank is in.
        count: how many have a number for a name, also of those that it is not in.
        era: how often there was a default group; names are the same on all ranks within one era.
        alike: how many groups of the same ranks have no number for a name.
        inherited: the default group is that of the program which spawned the rank.
    """

    by_name: dict[str, ProcessGroup] = field(default_factory=dict)
    count: int = 0
    era: int = 0
    alike: Counter[tuple[int, ...]] = field(default_factory=Counter)
    inherited: bool = False

    def next_name(self) -> str:
        """The name of the next group that all ranks of the default group make."""
        self.count += 1
        return str(self.count - 1)

    def name_of(self, members: tuple[int, ...]) -> str:
        """The name of the next group that only its members make."""
        self.alike[members] += 1
        return f"{'_'.join(map(str, members))}#{self.alike[members]}"

    def clear(self) -> None:
        """Forgets all groups."""
        for group in self.by_name.values():
            group.alive = False
        self.by_name.clear()
        self.count, self.inherited = 0, False


groups: RankLocal[Groups] = RankLocal(Groups)
"""Those of the running rank."""


def shared_membership(name: str, members: tuple[int, ...], label: str) -> Membership:
    """What ranks have in common that make a group of this name; they must agree on its members.

    Raises:
        MismatchError: they do not.
    """
    context = _runtime.current()
    kept = context.own if context.tasks is None else context.tasks.shared
    key = (Membership, groups.get().era, name)
    found = kept.get(key)
    if found is None:
        number = int(name) if name.isdecimal() else len(kept)
        handle = go.NewGroup(context.world.handle, number, label, ",".join(map(str, members)))
        site = _runtime.call_site()
        found = kept[key] = Membership(context.world, handle, members, maker=context.rank, site=site)
    if found.members != members:
        low, high = sorted((context.rank, found.maker))
        raise MismatchError(
            f"ranks {low} and {high} disagree on the members of process group {label}:\n"
            f"  rank {found.maker} makes it of ranks {list(found.members)} at {found.site}\n"
            f"  rank {context.rank} makes it of ranks {list(members)} at {_runtime.call_site()}\n"
            "All ranks of the world, not only the members, must make the same groups in the same order."
        )
    return found


# -- the default group


def current_default() -> ProcessGroup | None:
    """This rank's default group: its own, or that of the program which spawned it; None without one."""
    context = _runtime.current()
    if context.group is None and context.inherited is not None and context.rank in context.inherited.index:
        context.group = context.inherited.of_another_rank()
        mine = groups.get()
        mine.by_name[context.group.group_name] = context.group
        mine.count, mine.inherited = 1, True
    return context.group


def default_group() -> ProcessGroup:
    """This rank's default group.

    Raises:
        ValueError: there is none.
    """
    group = _runtime.current().group or current_default()
    if group is None:
        raise ValueError(_NOT_INITIALIZED)
    return group


def set_default(group: ProcessGroup | None) -> None:
    """Makes a group this rank's default one."""
    context = _runtime.current()
    context.group, context.inherited = group, None
    groups.get().inherited = False


class _HasWorld(type):
    """Gives classes the attribute WORLD, the default group of the rank that asks."""

    @property
    def WORLD(cls) -> ProcessGroup | None:  # noqa: N802 (PyTorch's name)
        """The default group; None without one."""
        return current_default()

    @WORLD.setter
    def WORLD(cls, group: ProcessGroup | None) -> None:  # noqa: N802
        set_default(group)


class group(metaclass=_HasWorld):  # noqa: N801 (PyTorch's name)
    """``group.WORLD`` is the default group."""


class GroupMember(metaclass=_HasWorld):
    """``GroupMember.WORLD`` is the default group."""

    NON_GROUP_MEMBER = NON_GROUP_MEMBER


# -- who is in a group


def member(of: ProcessGroup | int | None, operation: str) -> ProcessGroup | None:
    """The group, or the default one for None; without it, after a warning, for a rank that is not in it.

    Raises:
        ValueError: there is no default group; the group was destroyed.
        TypeError: not a group.
    """
    if of is None:
        return default_group()
    if not isinstance(of, ProcessGroup):
        if of != NON_GROUP_MEMBER or isinstance(of, bool):
            raise TypeError(f"group must be a ProcessGroup, not {type(of).__name__}")
    elif not of.alive:
        raise ValueError(f"Invalid process group specified: {of.group_name} was destroyed")
    elif of.sharded or _runtime.current().rank in of.index:
        return of
    warn_outsider(operation)
    return None


def warn_outsider(operation: str) -> None:
    """Warns that this rank calls an operation of a group which it is not in."""
    known = current_default()
    warnings.warn(
        f"Running {operation} on global rank {known.rank() if known else -1} which does not belong to the given group.",
        stacklevel=_program_level(),
    )


def _program_level() -> int:
    """The stacklevel, for a caller that warns, of the program's own frame."""
    frame, level = sys._getframe(1), 1
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_runtime.PACKAGE):
        frame, level = frame.f_back, level + 1
    return level


def is_outside(of: ProcessGroup | int | None) -> bool:
    """Whether this rank is not in the group."""
    if isinstance(of, ProcessGroup):
        return of.rank() < 0
    return of == NON_GROUP_MEMBER


def resolved(of: ProcessGroup | None) -> ProcessGroup:
    """The group, or the default one for None.

    Raises:
        ValueError: there is no default group; this rank is not in the group, or it was destroyed.
        TypeError: not a group.
    """
    if of is None:
        return default_group()
    if is_outside(of):
        raise ValueError("Invalid process group specified")
    if not isinstance(of, ProcessGroup):
        raise TypeError(f"group must be a ProcessGroup, not {type(of).__name__}")
    if not of.alive:
        raise ValueError(f"Invalid process group specified: {of.group_name} was destroyed")
    return of


def get_rank(group: ProcessGroup | None = None) -> int:
    """This rank's number in the group; -1 when it is not in it."""
    return -1 if is_outside(group) else resolved(group).rank()


def get_world_size(group: ProcessGroup | None = None) -> int:
    """The number of ranks of the group; -1 when this one is not in it."""
    return -1 if is_outside(group) else resolved(group).size()


# -- ranks of the default group and of other ones


def get_group_rank(group: ProcessGroup, global_rank: int) -> int:
    """The group rank of a rank of the default group.

    Raises:
        ValueError: no group; the rank is not in it. For the default group every number is its own.
    """
    if group is current_default():
        return global_rank
    ranks = _registered(group).ranks
    if global_rank not in ranks:
        raise ValueError(f"Global rank {global_rank} is not part of group {group}")
    return ranks.index(global_rank)


def get_global_rank(group: ProcessGroup, group_rank: int) -> int:
    """The rank in the default group of a group rank.

    Raises:
        ValueError: no group; it has no such rank. For the default group every number is its own.
    """
    if group is current_default():
        return group_rank
    ranks = _registered(group).ranks
    if not 0 <= group_rank < len(ranks):
        raise ValueError(f"Group rank {group_rank} is not part of group {group}")
    return ranks[group_rank]


def _registered(group: Any) -> ProcessGroup:
    if not isinstance(group, ProcessGroup) or not group.alive:
        raise ValueError(f"Group {group} is not registered, please create group with torch.distributed.new_group API")
    return group


def get_process_group_ranks(group: ProcessGroup | None) -> list[int]:
    """The ranks of the default group that are in this one, by group rank."""
    return list((default_group() if group is None else _registered(group)).ranks)


def group_rank_of(group: ProcessGroup, global_rank: int | None, group_rank: int | None) -> int:
    """The group rank that a call names in one of two ways.

    Raises:
        ValueError: in both, or in none; the rank is not in the group.
    """
    if group_rank is not None:
        if global_rank is not None:
            raise ValueError("Can't specify both group_rank and global_rank")
        return group_rank
    if global_rank is None:
        raise ValueError("Must specify global_rank or group_rank")
    return get_group_rank(group, global_rank)


def global_rank_of(group: ProcessGroup, global_rank: int | None, group_rank: int | None) -> int:
    """The rank of the default group that a call names in one of two ways; errors as group_rank_of."""
    if group_rank is not None and global_rank is None:
        return get_global_rank(group, group_rank)
    group_rank_of(group, global_rank, group_rank)
    assert global_rank is not None
    return global_rank


# -- what is known about groups


def get_backend(group: ProcessGroup | None = None) -> str:
    """The name of the backend.

    Raises:
        ValueError: this rank is not in the group; not a group.
    """
    if is_outside(group):
        raise ValueError("Invalid process group specified")
    if group is not None and not (isinstance(group, ProcessGroup) and group.alive):
        raise ValueError(
            f"Process group {group} is not initialized in the world group map. Please initialize the group first."
        )
    return resolved(group).backend


def get_backend_config(group: ProcessGroup | None = None) -> str:
    """The backend for each type of device: "cpu:gloo,cuda:nccl"."""
    return repr(_backends.BackendConfig(get_backend(group)))


def get_pg_count() -> int:
    """The number of groups that all ranks have made together."""
    return groups.get().count


def find_by_name(name: str) -> ProcessGroup:
    """The group of this rank that has the name.

    Raises:
        RuntimeError: there is none.
    """
    current_default()
    found = groups.get().by_name.get(name)
    if found is None:
        raise RuntimeError(f"Could not resolve the process group registered under the name {name!r}")
    return found
