"""The groups that ranks form for model parallelism, and what a rank knows of those that it is in.

Which ranks form one, the Go core says (tp/kinds.go). What a rank knows is its own, as a process's globals are.
"""

from __future__ import annotations

import functools
import json
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from torchemu import runtime
from torchemu.bridge.binding import go
from torchemu.frontends.numpy import distributed as dist
from torchemu.runtime.rank_local import RankLocal

Choose = Callable[[list[int]], Sequence[int]]


@dataclass
class State:
    """The state of a rank.

    Attributes:
        initialize: makes the same groups for another rank; None where nothing was initialized.
        groups: those that the rank is in, by the names that the Go core has for them.
        ranks, sizes: what was set instead of the groups' own, by the kinds' names.
        virtual_rank, virtual_size: which of the rank's pipeline stages runs, of how many; None without interleaving.
    """

    initialize: Callable[[], None] | None = None
    groups: dict[str, Any] = field(default_factory=dict)
    ranks: dict[str, int | None] = field(default_factory=dict)
    sizes: dict[str, int | None] = field(default_factory=dict)
    virtual_rank: int | None = None
    virtual_size: int | None = None


_STATE: RankLocal[State] = RankLocal(State)


def current() -> State:
    """Returns the running rank's. A rank that has none has, like its default process group, that of the program which
    spawned it."""
    parent = runtime.current().parent
    if _STATE.get().initialize is None and parent is not None:
        inherited = parent.own.get(_STATE)
        if inherited is not None and inherited.initialize is not None:
            inherited.initialize()
    return _STATE.get()


def forget() -> None:
    """Makes the running rank's state that before groups were made."""
    _STATE.set(State())


@dataclass(frozen=True)
class Kind:
    """A kind of groups, of which a rank has one. Its methods are what Megatron has functions for.

    Attributes:
        name: the Go core's.
        alone: the answer of size and rank without a default process group; None: they are AssertionErrors.
    """

    name: str
    alone: int | None = None

    def group(self, check_initialized: bool = True) -> Any:
        """Returns the rank's group.

        Args:
            check_initialized: that there is none is an AssertionError; otherwise the answer is None then.
        """
        found = current().groups.get(self.name)
        assert found is not None or not check_initialized, f"{self.name} group is not initialized"
        return found

    def size(self) -> int:
        """Returns the number of ranks in the rank's group, unless another was set."""
        return self._answer(current().sizes, "size")

    def rank(self) -> int:
        """Returns the rank's number in its group, unless another was set."""
        return self._answer(current().ranks, "rank")

    def _answer(self, chosen: Mapping[str, int | None], method: str) -> int:
        number = chosen.get(self.name)
        if number is None and self.alone is not None and not dist.is_initialized():
            return self.alone
        answer: int = getattr(self.group(), method)() if number is None else number
        return answer

    def set_size(self, world_size: int | None) -> None:
        """Makes size() answer this; None: the group's own again."""
        current().sizes[self.name] = world_size

    def set_rank(self, rank: int | None) -> None:
        """Makes rank() answer this; None: the group's own again."""
        current().ranks[self.name] = rank

    def first_rank(self) -> int:
        """Returns the first rank of the rank's group, from where others get what all are to have."""
        first: int = self.group().ranks[0]
        return first

    def host_group(self) -> Any:
        """Returns the group of the same ranks for tensors of hosts; an AssertionError where there is none."""
        return Kind(f"{self.name} group-gloo").group()


TENSOR, PIPELINE, MODEL = Kind("tensor model parallel"), Kind("pipeline model parallel"), Kind("model parallel")
DATA, PARTIAL_DATA = Kind("data parallel", 0), Kind("intra partial data parallel", 0)
DATA_WITH_CONTEXT = Kind("data parallel with context parallel combined", 0)
CONTEXT, TENSOR_AND_CONTEXT = Kind("context parallel", 0), Kind("tensor and context parallel", 0)
TENSOR_AND_DATA = Kind("tensor and data parallel")
TENSOR_AND_DATA_WITH_CONTEXT = Kind("tensor and data parallel with context parallel")
EMBEDDING, POSITION_EMBEDDING = Kind("embedding"), Kind("position embedding")
EXPERT_MODEL, EXPERT_TENSOR = Kind("expert model parallel", 0), Kind("expert tensor parallel")
EXPERT_TENSOR_AND_MODEL = Kind("expert tensor and model parallel", 0)
EXPERT_TENSOR_MODEL_PIPELINE = Kind("expert tensor model pipeline parallel")
EXPERT_DATA, PARTIAL_EXPERT_DATA = Kind("expert data parallel", 0), Kind("intra partial expert data parallel", 0)
INTRA_INSTANCE = Kind("intra distributed optimizer instance")
INTER_INSTANCE = Kind("inter partial expert data parallel")

_ON_HOSTS = {kind.name for kind in (DATA, DATA_WITH_CONTEXT, PARTIAL_DATA, EXPERT_DATA, PARTIAL_EXPERT_DATA)}
"""The kinds that have other groups of the same ranks, for tensors of hosts."""


@functools.lru_cache(maxsize=8)
def _partitions(world_size: int, sizes: str) -> dict[str, dict[int, Sequence[int]]]:
    """Asks the core for the groups of all ranks: by the kind's name the one that each rank is in."""
    found = json.loads(go.ParallelGroups(world_size, sizes))
    return {kind["name"]: {rank: ranks for ranks in kind["groups"] or () for rank in ranks} for kind in found}


def initialize(
    sizes: Mapping[str, Any], chosen: Mapping[str, Choose | None], timeout: timedelta, on_hosts: bool
) -> None:
    """Makes the groups that the running rank is in. Every rank makes its own, in the same order.

    Args:
        sizes: as the Go core's Config has them; those that are left out are as usual.
        chosen: which ranks of a pipeline are in the group of a kind; None: as usual.
        timeout: of operations in the groups.
        on_hosts: make groups for tensors of hosts, too.

    Raises:
        RuntimeError, AssertionError: the sizes do not fit the number of ranks, or one another.
    """
    assert dist.is_initialized(), "the default process group is not initialized: call init_process_group first"
    assert _STATE.get().initialize is None, "data parallel group is already initialized"
    everyone, mine = _partitions(dist.get_world_size(), json.dumps(sizes)), dist.get_rank()
    stages = sizes.get("virtual_pipeline_model_parallel_size")
    state = State(functools.partial(initialize, sizes, chosen, timeout, on_hosts), virtual_size=stages)
    state.virtual_rank = None if stages is None else 0
    pipeline = everyone[PIPELINE.name].get(mine)
    for name, by_rank in sorted(everyone.items()):
        choose, ranks = chosen.get(name), by_rank.get(mine, ())
        if choose is not None and pipeline is not None:
            ranks = [operator.index(rank) for rank in choose(list(pipeline))]
        state.groups[name] = _made(mine, ranks, timeout, name)
        if on_hosts and name in _ON_HOSTS:
            twin = f"{name} group-gloo"
            state.groups[twin] = _made(mine, ranks, timeout, name, "gloo")
    _STATE.set(state)


def _made(mine: int, ranks: Sequence[int], timeout: timedelta, name: str, backend: str | None = None) -> Any:
    """The group of these ranks; None where the rank is not among them."""
    if mine not in ranks:
        return None
    title = f"{name.upper().replace(' ', '_')}_GROUP" + ("_GLOO" if backend else "")
    return dist.new_group(tuple(ranks), timeout, backend, use_local_synchronization=True, group_desc=title)
