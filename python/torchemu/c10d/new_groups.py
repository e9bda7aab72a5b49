"""Making process groups out of the ranks of another one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from torchemu import runtime
from torchemu.c10d import backends
from torchemu.c10d.checks import integer
from torchemu.c10d.custom_groups import Plan, is_custom
from torchemu.c10d.group import Group
from torchemu.c10d.groups import (
    NON_GROUP_MEMBER,
    default_group,
    get_process_group_ranks,
    get_rank,
    get_world_size,
    group_class,
    resolved,
    set_default,
)
from torchemu.c10d.lifecycle import default_store
from torchemu.c10d.membership import groups, shared_membership
from torchemu.runtime import group_makers

SHRINK_DEFAULT = 0
"""shrink_group leaves alone what was issued to the old group."""

SHRINK_ABORT = 1
"""shrink_group ends, with an error, what was issued to the old group."""


def new_group(
    ranks: Iterable[int] | None = None,
    timeout: timedelta | None = None,
    backend: str | None = None,
    pg_options: Any = None,
    use_local_synchronization: bool = False,
    group_desc: str | None = None,
    device_id: Any = None,
    sort_ranks: bool = True,
) -> Any:
    """Makes a process group. All ranks of the default group must call it, members or not, in the same order.

    Args:
        ranks: of the default group; None is all.
        timeout: how long an operation may take.
        backend: None is that of the default group.
        pg_options: for a backend of the program's own.
        use_local_synchronization: only the members call it; others that do get None.
        group_desc: what it is for, for messages.
        device_id: kept as bound_device_id.
        sort_ranks: give group ranks in the order of the ranks, and not as they are listed.

    Returns:
        the group; NON_GROUP_MEMBER for a rank that is not in it.

    Raises:
        TypeError: a rank is no integer.
        ValueError: too many ranks, one twice, or one that does not exist.
        MismatchError: another rank makes this group of other ranks.
    """
    whole = default_group()
    chosen = _checked_ranks(whole, ranks, sort_ranks)
    if use_local_synchronization and whole.rank() not in chosen:
        return None
    mine = groups.get()
    members = tuple(map(whole.shared.members.__getitem__, chosen))
    if use_local_synchronization:
        name = mine.name_of(members)
    else:
        name = mine.next_name()
        group_makers.note_call((mine.era, name), _label(name, group_desc), members, whole.shared.members)
    asked = Asked(timeout, backend, device_id, pg_options)
    return _made(whole, name, chosen, group_desc, asked)


def _checked_ranks(whole: Group, ranks: Iterable[int] | None, sort_ranks: bool) -> list[int]:
    if whole.sharded:
        raise NotImplementedError("groups of the shards of a single worker are not supported")
    chosen = (
        list(range(whole.size())) if ranks is None else [integer(rank, "a rank of the new group") for rank in ranks]
    )
    if sort_ranks:
        chosen.sort()
    if len(set(chosen)) != len(chosen):
        raise ValueError(f"ranks list must not contain duplicate entries, got {chosen}")
    if len(chosen) > whole.size():
        raise ValueError(
            "the new group's world size should be less or equal to the world size set by init_process_group"
        )
    if chosen and not (min(chosen) >= 0 and max(chosen) < whole.size()):
        raise ValueError(
            f"The new group's rank should be within the world_size set by init_process_group, which is {whole.size()}; "
            f"got {chosen}"
        )
    return chosen


@dataclass(frozen=True)
class Asked:
    """A program asks this of a new group; what is None is as in the group that it is made of."""

    timeout: timedelta | None = None
    backend: str | None = None
    device_id: Any = None
    options: Any = None


def _label(name: str, description: str | None) -> str:
    return f"{name} ({description})" if description else name


def _made(parent: Group, name: str, ranks: Sequence[int], description: str | None, asked: Asked) -> Any:
    """The group of some ranks of the default group."""
    kind = parent.backend if asked.backend is None else backends.checked(asked.backend)
    limit = backends.checked_timeout(asked.timeout, kind)
    whole = default_group()
    members = tuple(map(whole.shared.members.__getitem__, ranks))
    if is_custom(kind):
        if whole.rank() not in ranks:
            return NON_GROUP_MEMBER
        about = (description or "undefined", limit, asked.options, default_store())
        group = group_class().custom(Plan(kind, list(ranks).index(whole.rank()), members, ranks, name, *about))
    else:
        label = _label(name, description)
        shared = shared_membership(name, members, label) if ranks else None
        if shared is None or whole.rank() not in ranks:
            return NON_GROUP_MEMBER
        if backends.Backend.GLOO in kind:
            group_makers.note(shared.handle, label, members)
        group = group_class().over(shared, ranks, name, description or "undefined", kind)
        group.timeout = limit
    group.bound_device_id = parent.bound_device_id if asked.device_id is None else asked.device_id
    groups.get().by_name[name] = group
    return group


def new_subgroups(
    group_size: int | None = None,
    group: Group | None = None,
    timeout: timedelta | None = None,
    backend: str | None = None,
    pg_options: Any = None,
    group_desc: str | None = None,
) -> tuple[Any, list[Any]]:
    """Cuts a group into groups of equal size: by default, those of one node each.

    Returns:
        the group that this rank is in, and all of them.

    Raises:
        ValueError: group_size is not positive, exceeds the size of the group, or does not divide it.
    """
    size = _ranks_per_node() if group_size is None else group_size
    if size <= 0:
        raise ValueError(f"The arg 'group_size' ({size}) must be positive")
    world_size = get_world_size(group)
    if world_size < size:
        raise ValueError(f"The arg 'group_size' ({size}) must not exceed the world size ({world_size})")
    if world_size % size:
        raise ValueError(f"The world size ({world_size}) must be divisible by 'group_size={size}'")
    ranks = get_process_group_ranks(group)
    parts = [ranks[i : i + size] for i in range(0, len(ranks), size)]
    return new_subgroups_by_enumeration(parts, timeout, backend, pg_options, group_desc)


def _ranks_per_node() -> int:
    system = runtime.current().world.spec["system"]
    return system["sips"]["count"] // system["nodes"]["count"]


def new_subgroups_by_enumeration(
    ranks_per_subgroup_list: Sequence[Sequence[int]],
    timeout: timedelta | None = None,
    backend: str | None = None,
    pg_options: Any = None,
    group_desc: str | None = None,
) -> tuple[Any, list[Any]]:
    """Makes several groups that have no rank in common.

    Returns:
        the group that this rank is in, None without one, and all of them.

    Raises:
        ValueError: the list is empty; a rank is in two of them.
    """
    if not ranks_per_subgroup_list:
        raise ValueError("The arg 'ranks_per_subgroup_list' cannot be empty")
    seen: dict[int, Sequence[int]] = {}
    for ranks in ranks_per_subgroup_list:
        for rank in ranks:
            if rank in seen:
                raise ValueError(f"Rank {rank} has appeared in both subgroup {seen[rank]} and {ranks}")
            seen[rank] = ranks
    made = [new_group(r, timeout, backend, pg_options, group_desc=group_desc) for r in ranks_per_subgroup_list]
    mine = seen.get(get_rank())
    return (None if mine is None else made[list(ranks_per_subgroup_list).index(mine)]), made


def split_group(
    parent_pg: Group | None = None,
    split_ranks: Sequence[Sequence[int]] | None = None,
    timeout: timedelta | None = None,
    pg_options: Any = None,
    group_desc: str | None = None,
    backend: str | None = None,
) -> Group | None:
    """Cuts a group into parts. All its ranks must call it.

    Args:
        parent_pg: the group; None is the default one.
        split_ranks: the group ranks in each part. Ranks need not be in any.
        timeout, pg_options, group_desc, backend: as for new_group; without a backend it is that of the parent.

    Returns:
        the part that this rank is in; None without one.

    Raises:
        ValueError: no parts, an empty or too large one, or a rank twice in one; this rank is not in the group.
    """
    if not split_ranks:
        raise ValueError("split_ranks cannot be None or empty")
    parent = resolved(parent_pg)
    for part in split_ranks:
        _check_part(parent, part)
    mine = [sorted(part) for part in split_ranks if parent.rank() in part]
    if not mine:
        return None
    ranks = [parent.ranks[r] for r in mine[0]]
    name = groups.get().name_of(tuple(parent.shared.members[r] for r in mine[0]))
    return _made(parent, name, ranks, group_desc or f"{parent.group_desc}:split", Asked(timeout, backend))


def _check_part(parent: Group, part: Sequence[int]) -> None:
    if not part:
        raise ValueError("the split group cannot be empty")
    if len(part) > parent.size():
        raise ValueError("the split group's size should be less or equal to the world_size set by init_process_group")
    if len(set(part)) != len(part):
        raise ValueError("the split group cannot have duplicate ranks")
    if any(not 0 <= r < parent.size() for r in part):
        raise ValueError(f"the split group {list(part)} has ranks that the parent, of size {parent.size()}, has not")


def shrink_group(
    ranks_to_exclude: list[int],
    group: Group | None = None,
    shrink_flags: int = SHRINK_DEFAULT,
    pg_options: Any = None,
) -> Group:
    """Replaces a group by one without some of its ranks, which must not call it. The old group is destroyed; where it
    was the default one, all others are too, the new one takes its place, and ranks have new numbers.

    Args:
        ranks_to_exclude: group ranks.
        group: None is the default one.
        shrink_flags: SHRINK_ABORT ends, with an error, what was issued to the old group.
        pg_options: means nothing here.

    Raises:
        TypeError: ranks_to_exclude is not a list of integers; the group is not on the fabric.
        ValueError: it is empty, has a rank twice, or one that does not exist, or has all ranks; unknown flags.
        RuntimeError: it has this rank.
    """
    old = resolved(group)
    if old.delegate is not None:
        raise TypeError(f"Process group backend for '{old.group_name}' does not support shrinking operations.")
    excluded = _checked_exclusion(old, ranks_to_exclude, shrink_flags)
    kept = [i for i in range(old.size()) if i not in excluded]
    if shrink_flags == SHRINK_ABORT:
        old.abort()
    mine = groups.get()
    members = tuple(old.shared.members[i] for i in kept)
    is_default = old is default_group()
    name = mine.name_of(members)
    shared = shared_membership(name, members, name)
    ranks = range(len(kept)) if is_default else [old.ranks[i] for i in kept]
    description = "default:shrunken" if is_default else f"{old.group_name}:shrunk"
    new = group_class().over(shared, ranks, name, description, old.backend)
    new.timeout, new.bound_device_id, new.store = old.timeout, old.bound_device_id, old.store
    _replace(old, new)
    return new


def _checked_exclusion(old: Group, ranks: Any, flags: int) -> set[int]:
    if not isinstance(ranks, list):
        raise TypeError(f"ranks_to_exclude must be a list, but got {type(ranks).__name__}")
    if not ranks:
        raise ValueError("ranks_to_exclude cannot be empty")
    if flags not in (SHRINK_DEFAULT, SHRINK_ABORT):
        raise ValueError(f"Invalid shrink_flags value: {flags}. Must be SHRINK_DEFAULT (0) or SHRINK_ABORT (1)")
    for i, rank in enumerate(ranks):
        if not isinstance(rank, int):
            raise TypeError(f"All elements in ranks_to_exclude must be integers. Element at index {i} is {rank!r}")
        if not 0 <= rank < old.size():
            raise ValueError(f"Rank {rank} at index {i} is out of bounds for group size {old.size()}")
        if rank in ranks[:i]:
            raise ValueError(f"Duplicate rank {rank} found in ranks_to_exclude at index {i}")
    if len(ranks) == old.size():
        raise ValueError(f"Cannot exclude all {old.size()} ranks from process group")
    if old.rank() in ranks:
        raise RuntimeError(f"Current rank {old.rank()} is in the exclusion list and should not call shrink_group()")
    return set(ranks)


def _replace(old: Group, new: Group) -> None:
    mine = groups.get()
    if old is default_group():
        count, era = mine.count, mine.era
        mine.clear()
        mine.count, mine.era = count, era
        set_default(new)
    old.alive = False
    mine.by_name.pop(old.group_name, None)
    mine.by_name[new.group_name] = new
