"""Making the groups that a rank is in for model parallelism. Which ranks form one the Go core says."""

from __future__ import annotations

import functools
import json
import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from torchemu.bridge.binding import go
from torchemu.frontends.numpy import distributed as dist
from torchemu.tp import _state

Ranks = tuple[int, ...]

SIZES = (
    "tensor_model_parallel_size",
    "pipeline_model_parallel_size",
    "virtual_pipeline_model_parallel_size",
    "context_parallel_size",
    "hierarchical_context_parallel_sizes",
    "hybrid_context_parallel",
    "expert_model_parallel_size",
    "gtp_remat_size",
    "expert_gtp_remat_size",
    "num_distributed_optimizer_instances",
    "expert_tensor_parallel_size",
    "order",
    "rank_offset",
    "local_world_size",
)
"""The arguments that decide which ranks form groups."""

COUNTS = frozenset(name for name in SIZES if name.endswith(("_size", "_instances")))
"""Those of them that count ranks, stages or instances."""

_WITH_GLOO = (
    _state.DATA,
    _state.DATA_WITH_CONTEXT,
    _state.INTRA_PARTIAL_DATA,
    _state.EXPERT_DATA,
    _state.INTRA_PARTIAL_EXPERT_DATA,
)
"""Kinds of groups of which Megatron has twins for tensors of hosts."""


_DESCRIPTIONS = {
    _state.DATA_WITH_CONTEXT: "DATA_PARALLEL_GROUP_WITH_CP",
    _state.INTRA_PARTIAL_DATA: "INTRA_PARTIAL_DATA_PARALLEL_GROUP_WITH_CP",
    "tensor and data parallel with context parallel": "TENSOR_AND_DATA_PARALLEL_GROUP_WITH_CP",
}
"""What Megatron calls groups, where that is not the kind's name."""


def gloo(kind: str) -> str:
    """The kind of the twin for tensors of hosts."""
    return f"{kind} group-gloo"


@dataclass(frozen=True)
class Choices:
    """What changes the groups besides their sizes.

    Attributes:
        embedding_ranks, position_embedding_ranks: which ranks of a pipeline have the embeddings; None: as usual.
        timeout: of operations in the groups.
        with_gloo: make twins for tensors of hosts.
    """

    embedding_ranks: Callable[[list[int]], Sequence[int]] | None = None
    position_embedding_ranks: Callable[[list[int]], Sequence[int]] | None = None
    timeout: timedelta = timedelta(minutes=30)
    with_gloo: bool = True


@dataclass(frozen=True)
class Membership:
    """The groups of all ranks: the one that each rank is in, by kind, by level of the hierarchy, and by hybrid size."""

    kinds: Mapping[str, Mapping[int, Ranks]]
    levels: Sequence[Mapping[int, Ranks]]
    hybrid: Mapping[int, Mapping[int, Ranks]]


@functools.lru_cache(maxsize=8)
def _membership(world_size: int, sizes: str) -> Membership:
    answer = json.loads(go.ParallelGroups(world_size, sizes))
    return Membership(
        {kind: _by_rank(groups) for kind, groups in answer["kinds"].items()},
        [_by_rank(groups) for groups in answer["levels"] or ()],
        {int(size): _by_rank(groups) for size, groups in sorted(answer["hybrid"].items())},
    )


def _by_rank(groups: Iterable[Sequence[int]] | None) -> dict[int, Ranks]:
    members = [tuple(ranks) for ranks in groups or ()]
    return {rank: ranks for ranks in members for rank in ranks}


def initialize(sizes: Mapping[str, Any], choices: Choices) -> None:
    """Makes the groups that the running rank is in. Every rank makes its own, in the same order.

    Args:
        sizes: by their names in SIZES; those that are left out are as usual.
        choices: what else changes the groups.

    Raises:
        RuntimeError, AssertionError: the sizes do not fit the number of ranks, or one another.
    """
    assert dist.is_initialized(), "the default process group is not initialized: call init_process_group first"
    if _state.is_own():
        raise AssertionError("data parallel group is already initialized")
    everyone = _membership(dist.get_world_size(), json.dumps(sizes))
    mine = dist.get_rank()
    make = functools.partial(_made, mine, choices.timeout)
    state = _state.State(initialize=functools.partial(initialize, sizes, choices))
    for kind, by_rank in everyone.kinds.items():
        ranks = _chosen(kind, by_rank.get(mine, ()), everyone, choices, mine)
        state.groups[kind] = make(kind, ranks)
        if choices.with_gloo and kind in _WITH_GLOO:
            state.groups[gloo(kind)] = make(gloo(kind), ranks, "gloo")
    state.levels = [
        make(f"hierarchical context parallel {i}", level.get(mine, ())) for i, level in enumerate(everyone.levels)
    ]
    state.hybrid = {size: make(f"hybrid {size}", part.get(mine, ())) for size, part in sorted(everyone.hybrid.items())}
    state.virtual_size = sizes.get("virtual_pipeline_model_parallel_size")
    state.virtual_rank = None if state.virtual_size is None else 0
    _state.replace(state)


def _chosen(kind: str, ranks: Ranks, everyone: Membership, choices: Choices, mine: int) -> Ranks:
    """The ranks of a group, or those of the rank's pipeline that the program has chosen."""
    choose = {
        _state.EMBEDDING: choices.embedding_ranks,
        _state.POSITION_EMBEDDING: choices.position_embedding_ranks,
    }.get(kind)
    pipeline = everyone.kinds[_state.PIPELINE].get(mine, ())
    return ranks if choose is None or not pipeline else tuple(map(operator.index, choose(list(pipeline))))


def _made(mine: int, timeout: timedelta, kind: str, ranks: Ranks, backend: str | None = None) -> Any:
    """The group of these ranks; None where the rank is not among them."""
    if mine not in ranks:
        return None
    return dist.new_group(ranks, timeout, backend, use_local_synchronization=True, group_desc=_title(kind))


def _title(kind: str) -> str:
    """What Megatron calls the group: TENSOR_MODEL_PARALLEL_GROUP."""
    plain = kind.removesuffix(" group-gloo")
    title = _DESCRIPTIONS.get(plain, plain.upper().replace(" ", "_") + "_GROUP")
    return title if plain == kind else title + "_GLOO"
