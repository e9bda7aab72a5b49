"""Process groups, and the numbers of ranks in them.

A front end derives its class of groups from Group, and registers it here with its class of tensors.
"""

from __future__ import annotations

import sys
import warnings
from typing import TYPE_CHECKING, Any

from torchemu import runtime
from torchemu.c10d import backends
from torchemu.c10d.checks import integer
from torchemu.c10d.group import Group
from torchemu.c10d.membership import groups
from torchemu.runtime.buffer import TensorClass, chosen

if TYPE_CHECKING:
    pass

NON_GROUP_MEMBER = -100
"""The result of new_group on a rank that is not in the group."""

_NOT_INITIALIZED = "Default process group has not been initialized, please make sure to call init_process_group."
_UNKNOWN = "Process group {} is not initialized in the world group map. Please initialize the group first."


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
    """Returns whether this rank is not in the group."""
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
        TypeError: the rank is no integer.
        ValueError: in both, or in none; the rank is not in the group.
    """
    if group_rank is not None:
        if global_rank is not None:
            raise ValueError("Can't specify both group_rank and global_rank")
        return integer(group_rank, "a rank")
    if global_rank is None:
        raise ValueError("Must specify global_rank or group_rank")
    return get_group_rank(group, integer(global_rank, "a rank"))


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
    mine = groups.get()
    found = mine.registered.get(name) or mine.by_name.get(name)
    if found is None:
        raise RuntimeError(f"Could not resolve the process group registered under the name {name}")
    return found


def register_by_name(name: str, group: Group) -> None:
    """Makes find_by_name find a group under another name, too."""
    groups.get().registered[name] = resolved(group)


def unregister_by_name(name: str) -> None:
    """Undoes register_by_name. A name that is not registered is no error."""
    groups.get().registered.pop(name, None)
