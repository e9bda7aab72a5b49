"""Process groups, and the numbers of ranks in them.

A front end derives its class of groups from Group, and registers it with its class of tensors.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Protocol

from torchemu import runtime
from torchemu.bridge.binding import go
from torchemu.c10d import backends, flight_files
from torchemu.c10d.backends import Backend
from torchemu.c10d.completion import Completion
from torchemu.c10d.hooks import Hooks
from torchemu.c10d.membership import Membership, groups
from torchemu.c10d.work import FOR_EVER
from torchemu.runtime.buffer import ACCELERATORS, HOST, Device, TensorClass, chosen
from torchemu.runtime.waiting import picoseconds

if TYPE_CHECKING:
    from torchemu.c10d.coalescing import Collected
    from torchemu.c10d.custom_groups import Plan
    from torchemu.c10d.stores import Store

NON_GROUP_MEMBER = -100
"""What new_group returns to a rank that is not in the group."""

_NOT_INITIALIZED = "Default process group has not been initialized, please make sure to call init_process_group."
_UNKNOWN = "Process group {} is not initialized in the world group map. Please initialize the group first."


class Delegate(Protocol):
    """The operations of a group that is not on the fabric are done by one of these: a front end has it."""

    def collective(self, call: str, outs: Sequence[Any], ins: Sequence[Any], async_op: bool) -> Any:
        """Does a collective, and returns its work; without async_op waits for it, and returns None."""

    def message(self, sending: bool, peer: int, tag: int, tensor: Any) -> Any:
        """Does one side of a message with a group rank, or from anybody for -1, and returns its work."""

    def name(self) -> str:
        """Returns the name of the group's backend."""

    def abort(self) -> None:
        """Ends what is under way."""


class Group:
    """A process group, as one of its ranks knows it.

    Attributes:
        ranks: the members' numbers in the default group, by group rank.
        group_name: the same on all ranks; the default group is "0".
        group_desc: what the program says it is for.
        backend: the backend's name, as the program gave it.
        takes_devices, takes_hosts: whether that is for tensors on devices, and in hosts' memory.
        holds_hosts: collectives block the host, as with gloo.
        coalescing: what a coalescing manager has collected; None outside of one.
        token: what a barrier reduces; None before the first.
        store: what was given to init_process_group, or found; None where nobody asked for it.
        monitored: how many monitored barriers this rank has called.
        hooks: the watchers of what this rank issues; None for none.
        served: the rank whose tensor was last found to be on a device that the group serves, and that device.
        alive: not destroyed.
        sharded: the members are the shards of a single worker's tensors.
    """

    store: Store | None
    _place: tuple[int, int] | None  # rank and size of a group that a program has made; None on the fabric

    @classmethod
    def over(cls, shared: Membership, ranks: Sequence[int], name: str, description: str, backend: str) -> Group:
        """The group of some ranks of the default group, whose collectives the fabric does."""
        group = cls.__new__(cls)
        group._begin(None)
        group.join(shared, ranks, name, description, backend)
        if not group.sharded:
            flight_files.watch_as_asked_for(group)
        return group

    def _begin(self, hooks: Hooks | None) -> None:
        self.hooks = hooks
        self.holds_hosts = False
        self._place = None
        self._bound_device: Any = None
        self.holds_hosts = False
        self.coalescing: Collected | None = None
        self.token: Any = None
        self.store = None
        self.monitored = 0
        self.alive = True

    def join(self, shared: Membership, ranks: Sequence[int], name: str, description: str, backend: str) -> None:
        """Makes it the group of some ranks of the default group."""
        self.world, self.handle, self.sharded = shared.world, shared.handle, shared.sharded
        self.shared = shared
        self.index = shared.index
        self.ranks = tuple(ranks)
        self._name, self._description, self.backend = name, description, backend
        served = backends.BackendConfig(backend).device_backend_map
        self.holds_hosts = backends.Backend.GLOO in (served.get(kind) for kind in ACCELERATORS)
        if self.holds_hosts:
            go.HoldHosts(self.handle)
        kinds = [HOST, *ACCELERATORS] if self._place else served
        self.takes_hosts = HOST in kinds
        self.takes_devices = any(kind in kinds for kind in ACCELERATORS)
        self._timeout = backends.default_timeout(backend)
        self.served: tuple[runtime.Context | None, Device | None] = (None, None)

    def of_another_rank(self) -> Group:
        """The same group as another rank knows it."""
        twin = type(self).over(self.shared, self.ranks, self.group_name, self.group_desc, self.backend)
        twin.timeout, twin._bound_device, twin.store = self.timeout, self._bound_device, self.store
        return twin

    @property
    def group_name(self) -> str:
        """The same on all ranks."""
        return self._name

    @property
    def group_desc(self) -> str:
        """What the program says it is for."""
        return self._description

    @property
    def is_registered(self) -> bool:
        """Whether it was made by init_process_group or one of the functions that make groups, and not destroyed."""
        return self.alive and self.backend != Backend.UNDEFINED

    @property
    def delegate(self) -> Any:
        """The Delegate of a group that is not on the fabric; None for one that is."""
        return None if self.hooks is None else self.hooks.delegate

    @property
    def tensors(self) -> TensorClass:
        """The class of the tensors that the group's own operations use."""
        return chosen()

    def finish_hooks(self) -> None:
        """Waits for what this rank has issued, where a function is to be called when it has ended."""
        completion = self.hooks.watchers.get(Completion) if self.hooks is not None else None
        if isinstance(completion, Completion):
            completion.finish()

    @classmethod
    def custom(cls, plan: Plan) -> Group:
        """Makes a group whose backends the program has registered.

        Raises:
            NotImplementedError: the front end knows no such groups.
        """
        raise NotImplementedError(f"backend {plan.backend!r}: the front end has no backends of a program's own")

    @property
    def bound_device_id(self) -> Any:
        """The device that the program bound the group to."""
        return self._bound_device

    @bound_device_id.setter
    def bound_device_id(self, where: Any) -> None:
        if getattr(where, "index", 0) is None:
            raise RuntimeError("setBoundDeviceId must have an index")
        self._bound_device = where

    def size(self) -> int:
        """The number of ranks."""
        return len(self.ranks) if self._place is None else self._place[1]

    def rank(self) -> int:
        """This rank's number in the group; a single worker is 0."""
        if self._place is not None:
            return self._place[0]
        return 0 if self.sharded else self.index.get(runtime.current().rank, -1)

    def name(self) -> str:
        """The name of the backend."""
        return self.backend if self.delegate is None else self.delegate.name()

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
        self.timeout = backends.checked_timeout(timeout, self.backend)

    def watch(self, limit: int) -> None:
        """Makes what this rank issues from now on fail after so many picoseconds; 0 is never."""
        if self.handle and not self.sharded:
            go.SetTimeout(self.handle, runtime.current().rank, limit if 0 < limit < FOR_EVER else 0)

    def get_group_store(self) -> Store:
        """A store that the members share."""
        if self._place is not None and self.store is not None:
            return self.store
        from torchemu.c10d.lifecycle import default_store
        from torchemu.c10d.stores import PrefixStore

        return PrefixStore(self.group_name, default_store())

    def abort(self) -> None:
        """Ends, with an error, what ranks have issued to the group and what waits for this rank to join it, and leaves
        the group."""
        if self.delegate is not None:
            self.delegate.abort()
        else:
            go.AbortGroup(self.handle, runtime.current().rank)
        self.alive = False

    def shutdown(self) -> None:
        """Leaves the group."""
        self.alive = False


# -- the default group


_classes: dict[type, type[Group]] = {}  # by the class of tensors of the front end


def register(tensors: TensorClass, kind: type[Group]) -> None:
    """Makes the groups of programs that have this class of tensors objects of a class derived from Group."""
    _classes[tensors.kind] = kind


def group_class() -> type[Group]:
    """Returns the class of the groups that programs of the current World make."""
    return _classes.get(chosen().kind, Group)


def current_default() -> Group | None:
    """This rank's default group: its own, or that of the program which spawned it; None without one."""
    context = runtime.current()
    if context.group is None and context.inherited is not None and context.rank in context.inherited.index:
        context.group = context.inherited.of_another_rank()
        mine = groups.get()
        mine.by_name[context.group.group_name] = context.group
        mine.count, mine.inherited = 1, True
    return context.group


def default_group() -> Group:
    """This rank's default group.

    Raises:
        ValueError: there is none.
    """
    group = runtime.current().group or current_default()
    if group is None:
        raise ValueError(_NOT_INITIALIZED)
    return group


def set_default(group: Group | None) -> None:
    """Makes a group this rank's default one."""
    context = runtime.current()
    context.group, context.inherited = group, None
    groups.get().inherited = False


# -- who is in a group


def member(of: Group | int | None, operation: str) -> Group | None:
    """The group, or the default one for None; without it, after a warning, for a rank that is not in it.

    Raises:
        ValueError: there is no default group; not a group; the group was destroyed.
    """
    if of is None:
        return default_group()
    if not isinstance(of, Group):
        if of != NON_GROUP_MEMBER or isinstance(of, bool):
            raise ValueError(_UNKNOWN.format(of))
    elif not of.alive:
        raise ValueError(f"Invalid process group specified: {of.group_name} was destroyed")
    elif of.sharded or runtime.current().rank in of.index:
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
    while frame.f_back is not None and frame.f_code.co_filename.startswith(runtime.PACKAGE):
        frame, level = frame.f_back, level + 1
    return level


def is_outside(of: Group | int | None) -> bool:
    """Whether this rank is not in the group."""
    if isinstance(of, Group):
        return of.rank() < 0
    return of == NON_GROUP_MEMBER


def resolved(of: Group | None) -> Group:
    """The group, or the default one for None.

    Raises:
        ValueError: there is no default group; not a group; this rank is not in it, or it was destroyed.
    """
    if of is None:
        return default_group()
    if is_outside(of):
        raise ValueError("Invalid process group specified")
    if not isinstance(of, Group):
        raise ValueError(_UNKNOWN.format(of))
    if not of.alive:
        raise ValueError(f"Invalid process group specified: {of.group_name} was destroyed")
    return of


def get_rank(group: Group | None = None) -> int:
    """This rank's number in the group; -1 when it is not in it."""
    return -1 if is_outside(group) else resolved(group).rank()


def get_world_size(group: Group | None = None) -> int:
    """The number of ranks of the group; -1 when this one is not in it."""
    return -1 if is_outside(group) else resolved(group).size()


# -- ranks of the default group and of other ones


def get_group_rank(group: Group, global_rank: int) -> int:
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


def get_global_rank(group: Group, group_rank: int) -> int:
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


def _registered(group: Any) -> Group:
    if not isinstance(group, Group) or not group.is_registered:
        raise ValueError(f"Group {group} is not registered, please create group with torch.distributed.new_group API")
    return group


def get_process_group_ranks(group: Group | None) -> list[int]:
    """The ranks of the default group that are in this one, by group rank."""
    return list((default_group() if group is None else _registered(group)).ranks)


def group_rank_of(group: Group, global_rank: int | None, group_rank: int | None) -> int:
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


def global_rank_of(group: Group, global_rank: int | None, group_rank: int | None) -> int:
    """The rank of the default group that a call names in one of two ways; errors as group_rank_of."""
    if group_rank is not None and global_rank is None:
        return get_global_rank(group, group_rank)
    group_rank_of(group, global_rank, group_rank)
    assert global_rank is not None
    return global_rank


# -- what is known about groups


def get_backend(group: Group | None = None) -> str:
    """The name of the backend.

    Raises:
        ValueError: this rank is not in the group; not a group.
    """
    if is_outside(group):
        raise ValueError("Invalid process group specified")
    if group is not None and not (isinstance(group, Group) and group.is_registered):
        raise ValueError(_UNKNOWN.format(group))
    return resolved(group).backend


def get_backend_config(group: Group | None = None) -> str:
    """The backend for each type of device: "cpu:gloo,cuda:nccl"."""
    return repr(backends.BackendConfig(get_backend(group)))


def get_pg_count() -> int:
    """The number of groups that all ranks have made together."""
    return groups.get().count


def find_by_name(name: str) -> Group:
    """The group of this rank that has the name.

    Raises:
        RuntimeError: there is none.
    """
    current_default()
    found = groups.get().by_name.get(name)
    if found is None:
        raise RuntimeError(f"Could not resolve the process group registered under the name {name}")
    return found
