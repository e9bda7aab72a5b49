"""New process groups: on the fabric, or as the backends make them that a program has registered."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from torchemu import runtime
from torchemu.c10d.backend_registry import known
from torchemu.c10d.backends import BackendConfig
from torchemu.c10d.membership import Membership, shared_membership
from torchemu.c10d.groups import ProcessGroup

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torchemu.c10d.stores import Store


@dataclass
class DistributedBackendOptions:
    """What the creator of a backend with the extended interface is told.

    Attributes:
        store: what the members share.
        group_rank, group_size: this rank in the group, and how many there are.
        timeout: how long an operation may take.
        group_id: the group's name.
        global_ranks_in_group: ranks of the default group; empty for the default group itself.
    """

    store: Any = None
    group_rank: int = 0
    group_size: int = 0
    timeout: timedelta = timedelta(minutes=30)
    group_id: str = ""
    global_ranks_in_group: Sequence[int] = ()


@dataclass(frozen=True)
class Plan:
    """What a group is to be whose backends a program has registered.

    Attributes:
        backend: as init_process_group takes it.
        rank: this rank's number in the group.
        members: the ranks' numbers in the World, by group rank.
        ranks: those in the default group; None for the default group.
        name, description: of the group.
        timeout: how long an operation may take.
        options: the program's pg_options.
        store: what the members share.
    """

    backend: str
    rank: int
    members: tuple[int, ...]
    ranks: Sequence[int] | None
    name: str
    description: str
    timeout: timedelta
    options: Any
    store: Store

    def make(self) -> ProcessGroup:
        """The group: what a creator has made, where that is a group, or else one that its backends serve."""
        from torchemu.c10d.stores import PrefixStore

        whole = PrefixStore(f"{self.name}/", self.store)
        group = ProcessGroup(whole, self.rank, len(self.members))
        kinds = BackendConfig(self.backend).device_backend_map
        alike = len(set(kinds.values())) == 1
        for kind, backend in kinds.items():
            made = self._served(backend, PrefixStore(f"{kind}/", whole))
            if isinstance(made, ProcessGroup) and made.carrier is not None:
                group = made
                break
            for each in kinds if alike else [kind]:
                group._register_backend(each, known().types[backend], made)
            if alike:
                break
        ranks = range(len(self.members)) if self.ranks is None else self.ranks
        shared = Membership(runtime.current().world, 0, self.members)
        group.join(shared, ranks, self.name, self.description, self.backend)
        group._timeout = self.timeout
        return group

    def _served(self, backend: str, store: Store) -> Any:
        """What the creator of one backend makes."""
        plugin = known().plugin(backend)
        if plugin is None:
            shared = shared_membership(self.name, self.members, self.name)
            ranks = range(len(self.members)) if self.ranks is None else self.ranks
            return ProcessGroup.over(shared, ranks, self.name, self.description, backend)
        if not plugin.extended_api:
            return plugin.creator_fn(store, self.rank, len(self.members), self.timeout)
        ranks = [] if self.ranks is None else list(self.ranks)
        size = len(self.members)
        about = DistributedBackendOptions(store, self.rank, size, self.timeout, self.name, ranks)
        return plugin.creator_fn(about, self.options)


def is_plugged(backend: str) -> bool:
    """Whether one of the backends of the name, or of the list of pairs, was registered by the program."""
    return any(known().plugin(name) is not None for name in BackendConfig(backend).device_backend_map.values())
