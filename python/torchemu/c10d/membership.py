"""Memberships are what the ranks of a process group have in common. Each rank knows its groups."""

from __future__ import annotations

import functools
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from torchemu import runtime
from torchemu.bridge.binding import go
from torchemu.runtime import footprints, group_makers
from torchemu.runtime.rank_local import RankLocal


@dataclass(frozen=True)
class Membership:
    """A membership is what the ranks of a process group have in common.

    Attributes:
        world: where it is.
        handle: the Go core's group.
        members: numbers in the World, by group rank.
        sharded: the members are the shards that a single worker's tensors have on the PEs of one SIP.
        maker, site: the rank that was the first to make the group, and where.
        key: by which the members find it.
        left: the members that have left the group.
    """

    world: runtime.World
    handle: int
    members: tuple[int, ...]
    sharded: bool = False
    maker: int = 0
    site: str = ""
    key: object = None
    left: set[int] = field(default_factory=set)

    @functools.cached_property
    def index(self) -> dict[int, int]:
        """Group ranks by numbers in the World: one table for all members, of which there may be thousands."""
        return {member: i for i, member in enumerate(self.members)}


@dataclass
class Groups:
    """The process groups of one rank.

    Attributes:
        by_name: those that this rank is in.
        registered: those that the program has registered under names of its own.
        count: how many have a number for a name, also of those that it is not in.
        era: how often there was a default group; names are the same on all ranks within one era.
        alike: how many groups of the same ranks have no number for a name.
        inherited: the default group is that of the program which spawned the rank.
    """

    by_name: dict[str, Any] = field(default_factory=dict)
    registered: dict[str, Any] = field(default_factory=dict)
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
        self.registered.clear()
        self.count, self.inherited = 0, False


groups: RankLocal[Groups] = RankLocal(Groups)
"""The groups of the running rank."""


def shared_membership(name: str, members: tuple[int, ...], label: str) -> Membership:
    """Returns what ranks have in common that make a group of this name; they must agree on its members, but for groups
    of one, of which each may make its own.

    Raises:
        MismatchError: they do not.
    """
    alone = members if len(members) == 1 else ()
    return common_membership((groups.get().era, name, *alone), name, members, label)


def common_membership(key: object, name: str, members: tuple[int, ...], label: str) -> Membership:
    """Acts as shared_membership, of the ranks that say the same key."""
    context = runtime.current()
    kept = context.own if context.tasks is None else context.tasks.shared
    key = (Membership, key)
    footprints.use(key, hash(members) | 1)
    found = kept.get(key)
    if found is None:
        number = int(name) if name.isdecimal() else len(kept)
        handle = go.NewGroup(context.world.handle, number, label, members)
        site = runtime.call_site()
        found = kept[key] = Membership(context.world, handle, members, maker=context.rank, site=site, key=key)
    if found.members != members:
        raise group_makers.disagreement(label, (found.maker, found.members, found.site), members)
    return found


def leave(of: Membership) -> None:
    """Notes that the running rank has left a group. The core forgets a group that all have left."""
    context = runtime.current()
    footprints.use(of.key)
    of.left.add(context.rank)
    if len(of.left) < len(of.members) or not of.handle:
        return
    kept = context.own if context.tasks is None else context.tasks.shared
    if kept.get(of.key) is of:
        kept[of.key] = None  # it still counts for the numbers of others
        group_makers.forget(of.handle)
        go.DropGroup(of.handle)
