"""Groups whose backends a program has registered with Backend.register_backend."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from torchemu import runtime
from torchemu.c10d.backend_registry import known
from torchemu.c10d.backends import BackendConfig
from torchemu.c10d.custom_groups import Plan
from torchemu.c10d.group import Group
from torchemu.c10d.groups import group_class
from torchemu.c10d.membership import Membership, shared_membership
from torchemu.c10d.stores import PrefixStore

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torchemu.c10d.stores import Store
    from torchemu.frontends.numpy.distributed._process_group import ProcessGroup


@dataclass
class DistributedBackendOptions:
    """Options tell the creator of a backend with the extended interface about the group.

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


def make(plan: Plan, made_as: type[ProcessGroup]) -> Group:
    """Makes a group: it is what a creator has made, where that is a group, or else one of the class, which its backends
    serve."""
    whole = PrefixStore(f"{plan.name}/", plan.store)
    group: Any = made_as(whole, plan.rank, len(plan.members))
    kinds = BackendConfig(plan.backend).device_backend_map
    alike = len(set(kinds.values())) == 1
    for kind, backend in kinds.items():
        made = _served(plan, backend, PrefixStore(f"{kind}/", whole))
        if isinstance(made, Group) and made.delegate is not None:
            group = made
            break
        for each in kinds if alike else [kind]:
            group._register_backend(each, known().types[backend], made)
        if alike:
            break
    ranks = range(len(plan.members)) if plan.ranks is None else plan.ranks
    shared = Membership(runtime.current().world, 0, plan.members)
    group.join(shared, ranks, plan.name, plan.description, plan.backend)
    group._timeout = plan.timeout
    return group


def _served(plan: Plan, backend: str, store: Store) -> Any:
    """Returns what the creator of one backend makes."""
    plugin = known().plugin(backend)
    if plugin is None:
        shared = shared_membership(plan.name, plan.members, plan.name)
        ranks = range(len(plan.members)) if plan.ranks is None else plan.ranks
        return group_class().over(shared, ranks, plan.name, plan.description, backend)
    if not plugin.extended_api:
        return plugin.creator_fn(store, plan.rank, len(plan.members), plan.timeout)
    ranks = [] if plan.ranks is None else list(plan.ranks)
    size = len(plan.members)
    about = DistributedBackendOptions(store, plan.rank, size, plan.timeout, plan.name, ranks)
    return plugin.creator_fn(about, plan.options)
