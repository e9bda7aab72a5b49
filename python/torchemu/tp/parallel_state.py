"""Megatron's parallel_state: the groups of ranks in model and data parallelism, as the running rank is in them.

What a rank knows is its own, as the globals of a process are. Getters of groups are an AssertionError where the rank
has none, unless they are called with check_initialized=False; setters change what getters answer, and no groups. Ranks
are numbers in the default process group unless something else is said.

===================================  ==============================================================
group                                the ranks that have
===================================  ==============================================================
tensor_model_parallel                parts of the same layers
pipeline_model_parallel              the stages of one pipeline
model_parallel                       one copy of the model
data_parallel                        the same parameters, and other data
context_parallel                     parts of the same sequences
tensor_and_data_parallel             one pipeline stage
tensor_and_context_parallel          parts of the same layers and sequences
embedding, position_embedding        the embedding, in one pipeline
expert_model_parallel                different experts
expert_tensor_parallel               parts of the same experts
expert_tensor_and_model_parallel     parts of all experts of a layer
expert_tensor_model_pipeline_…       one copy of the model's experts
expert_data_parallel                 the same parts of the same experts, and other data
intra_distributed_optimizer_…        one instance of the distributed optimizer
inter_distributed_optimizer_…        the same place in each instance
===================================  ==============================================================
"""

from __future__ import annotations

import json
import operator
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from torchemu.bridge.binding import go
from torchemu.frontends.numpy import distributed as dist
from torchemu.tp import _groups as groups
from torchemu.tp._groups import Choose, Kind

_NO_SIZES = {
    "pipeline_model_parallel_comm_backend",
    "use_sharp",
    "nccl_communicator_config_path",
    "distributed_timeout_minutes",
    "get_embedding_ranks",
    "get_position_embedding_ranks",
    "create_gloo_process_groups",
    "high_priority_stream_groups",
    "sharp_enabled_group",
}
"""The arguments that do not decide which ranks form groups."""


def initialize_model_parallel(
    tensor_model_parallel_size: int = 1,
    pipeline_model_parallel_size: int = 1,
    virtual_pipeline_model_parallel_size: int | None = None,
    pipeline_model_parallel_comm_backend: str | None = None,
    use_sharp: bool = False,
    context_parallel_size: int = 1,
    hierarchical_context_parallel_sizes: Sequence[int] | None = None,
    hybrid_context_parallel: bool = False,
    expert_model_parallel_size: int = 1,
    gtp_remat_size: int = 1,
    expert_gtp_remat_size: int = 1,
    num_distributed_optimizer_instances: int = 1,
    expert_tensor_parallel_size: int | None = None,
    nccl_communicator_config_path: str | None = None,
    distributed_timeout_minutes: float = 30,
    order: str = "tp-cp-ep-dp-pp",
    get_embedding_ranks: Choose | None = None,
    get_position_embedding_ranks: Choose | None = None,
    create_gloo_process_groups: bool = True,
    high_priority_stream_groups: Sequence[str] | None = None,
    sharp_enabled_group: str | None = None,
    rank_offset: int = 0,
    local_world_size: int | None = None,
) -> None:
    """Makes the groups that the rank is in. Data parallelism gets the ranks that the other sizes leave.

    Args:
        tensor_model_parallel_size, pipeline_model_parallel_size, context_parallel_size: into how many parts the
            dense layers are divided.
        virtual_pipeline_model_parallel_size: stages that each rank has of an interleaved pipeline; None: one.
        hierarchical_context_parallel_sizes: of the levels of a hierarchy, from the innermost on.
        hybrid_context_parallel: make groups of data and context parallelism of every power of two.
        expert_model_parallel_size, expert_tensor_parallel_size: of expert layers; the second is, by default, the
            dense layers'.
        gtp_remat_size, expert_gtp_remat_size: ranks among which weights are sharded until they are used.
        num_distributed_optimizer_instances: of which each has the whole state of the optimizer.
        distributed_timeout_minutes: how long an operation in a group may take.
        order: of the kinds of parallelism; the leftmost varies fastest from rank to rank.
        get_embedding_ranks, get_position_embedding_ranks: which ranks of a pipeline have the embeddings; without, the
            first and the last, and the first.
        create_gloo_process_groups: make groups for tensors of hosts too.
        rank_offset, local_world_size: only so many ranks, from this one on, are arranged.
        pipeline_model_parallel_comm_backend: None, "nccl" or "ucc", which are the same.
        use_sharp, nccl_communicator_config_path, high_priority_stream_groups,
            sharp_enabled_group: mean nothing here.

    Raises:
        RuntimeError: the number of ranks is not divisible by the sizes; interleaving without a pipeline; an order that
            lacks a kind; a size below 1.
        TypeError: a size that is no integer.
        AssertionError: there is no default process group, or the groups exist; sizes that contradict each other;
            another backend.
    """
    given = {name: value for name, value in locals().items() if name not in _NO_SIZES and value is not None}
    backend = pipeline_model_parallel_comm_backend
    assert backend in (None, "nccl", "ucc"), f'"{backend}" backend for PP communication is currently not supported'
    given |= {n: _count(n, value) for n, value in given.items() if n.endswith(("_size", "_instances"))}
    chosen = {
        groups.EMBEDDING.name: get_embedding_ranks,
        groups.POSITION_EMBEDDING.name: get_position_embedding_ranks,
    }
    timeout = timedelta(minutes=distributed_timeout_minutes)
    groups.initialize(given, chosen, timeout, create_gloo_process_groups)


def _count(name: str, value: Any) -> int:
    try:
        number = operator.index(value)
    except TypeError:
        raise TypeError(f"{name} must be an integer, not {value!r}") from None
    if number < 1:
        raise RuntimeError(f"{name} is {number}: it must be at least 1")
    return number


def is_initialized() -> bool:
    """Says whether the rank has groups."""
    return groups.current().initialize is not None


def is_unitialized() -> bool:
    """Says whether the rank has no groups. (The name is Megatron's.)"""
    return not is_initialized()


model_parallel_is_initialized = is_initialized
destroy_model_parallel = groups.forget


class RankGenerator:
    """Arranges ranks along the kinds of parallelism; the Go core does it.

    Args:
        tp, ep, dp, pp, cp: sizes of tensor, expert, data, pipeline and context parallelism.
        order: of the kinds, such as "tp-cp-ep-dp-pp"; the leftmost varies fastest. Kinds of size 1 may be left out.
        rank_offset: the number of the first rank.

    Attributes:
        world_size: the number of ranks.

    Raises:
        AssertionError: both ep and cp are greater than 1.
        RuntimeError: the order lacks a kind, or has one that does not exist.
    """

    def __init__(self, tp: int, ep: int, dp: int, pp: int, cp: int, order: str, rank_offset: int = 0) -> None:
        self.tp, self.ep, self.dp, self.pp, self.cp, self.order = tp, ep, dp, pp, cp, order
        self.rank_offset = rank_offset
        self.world_size = tp * dp * pp * cp * ep
        self.get_ranks("tp")

    def get_ranks(self, token: str) -> list[list[int]]:
        """Returns the groups of ranks that differ in the kinds which are named, "tp-dp", alone."""
        found = json.loads(go.RankGroups(self.tp, self.cp, self.ep, self.dp, self.pp, self.order, token))
        return [[self.rank_offset + rank for rank in ranks] for ranks in found]


# -- dense layers

get_model_parallel_group = groups.MODEL.group
get_model_parallel_src_rank = groups.MODEL.first_rank

get_tensor_model_parallel_group = groups.TENSOR.group
get_tensor_model_parallel_world_size = groups.TENSOR.size
set_tensor_model_parallel_world_size = groups.TENSOR.set_size
get_tensor_model_parallel_rank = groups.TENSOR.rank
set_tensor_model_parallel_rank = groups.TENSOR.set_rank
get_tensor_model_parallel_src_rank = groups.TENSOR.first_rank

get_context_parallel_group = groups.CONTEXT.group
get_context_parallel_world_size = groups.CONTEXT.size
get_context_parallel_rank = groups.CONTEXT.rank

get_tensor_and_context_parallel_group = groups.TENSOR_AND_CONTEXT.group
get_tensor_and_context_parallel_world_size = groups.TENSOR_AND_CONTEXT.size
get_tensor_and_context_parallel_rank = groups.TENSOR_AND_CONTEXT.rank

get_embedding_group = groups.EMBEDDING.group
get_position_embedding_group = groups.POSITION_EMBEDDING.group


def get_context_parallel_global_ranks(check_initialized: bool = True) -> list[int] | None:
    """Returns the ranks of the context parallel group."""
    group = get_context_parallel_group(check_initialized)
    return None if group is None else list(group.ranks)


def get_hierarchical_context_parallel_groups(check_initialized: bool = True) -> list[Any]:
    """Returns the rank's groups on the levels of the hierarchy of its context parallel group, from the innermost on."""
    levels = [group for name, group in groups.current().groups.items() if name.startswith("hierarchical context")]
    assert levels or not check_initialized, "hierarchical context parallel groups are not initialized"
    return levels


def get_hybrid_data_context_parallel_groups(check_initialized: bool = True, group_size: int | None = None) -> Any:
    """Returns the rank's group of so many ranks with data and context parallelism between them."""
    if group_size is not None and get_data_parallel_world_size(with_context_parallel=True) == group_size:
        return get_data_parallel_group(with_context_parallel=True)
    return Kind(f"hybrid data and context parallel {group_size}").group(check_initialized)


def get_tensor_and_data_parallel_group(check_initialized: bool = True, with_context_parallel: bool = False) -> Any:
    """Returns the ranks of one pipeline stage, with context parallelism or without."""
    kind = groups.TENSOR_AND_DATA_WITH_CONTEXT if with_context_parallel else groups.TENSOR_AND_DATA
    return kind.group(check_initialized)


def _data(with_context_parallel: bool, partial_data_parallel: bool) -> Kind:
    """The kind of a data parallel group; partial is one instance of the distributed optimizer's."""
    if with_context_parallel:
        return groups.PARTIAL_DATA if partial_data_parallel else groups.DATA_WITH_CONTEXT
    assert not partial_data_parallel, "Partial DP for Optimizer needs to include CP"
    return groups.DATA


def get_data_parallel_group(with_context_parallel: bool = False, partial_data_parallel: bool = False) -> Any:
    """Returns the ranks that have the same parameters, and other data."""
    return _data(with_context_parallel, partial_data_parallel).group()


def get_data_parallel_group_gloo(with_context_parallel: bool = False, partial_data_parallel: bool = False) -> Any:
    """Returns the group of the same ranks for tensors of hosts."""
    return _data(with_context_parallel, partial_data_parallel).host_group()


def get_data_parallel_world_size(with_context_parallel: bool = False, partial_data_parallel: bool = False) -> int:
    """Returns the number of ranks in the group; 0 without a default process group."""
    return _data(with_context_parallel, partial_data_parallel).size()


def get_data_parallel_rank(with_context_parallel: bool = False, partial_data_parallel: bool = False) -> int:
    """Returns the rank's number in the group, unless another was set; 0 without a default process group."""
    chosen = groups.current().ranks.get(groups.DATA.name)
    return _data(with_context_parallel, partial_data_parallel).rank() if chosen is None else chosen


def get_data_parallel_src_rank(with_context_parallel: bool = False) -> int:
    """Returns the first rank of the group."""
    return _data(with_context_parallel, False).first_rank()


set_data_parallel_rank = groups.DATA.set_rank


def get_all_ranks() -> str:
    """Returns the rank's numbers in its tensor, data, context, pipeline and expert parallel groups: "0_1_0_0_0"."""
    kinds = (groups.TENSOR, groups.DATA, groups.CONTEXT, groups.PIPELINE, groups.EXPERT_MODEL)
    return "_".join(str(kind.rank()) for kind in kinds)


# -- pipelines

get_pipeline_model_parallel_group = groups.PIPELINE.group
get_pipeline_model_parallel_world_size = groups.PIPELINE.size
set_pipeline_model_parallel_world_size = groups.PIPELINE.set_size
get_pipeline_model_parallel_rank = groups.PIPELINE.rank
set_pipeline_model_parallel_rank = groups.PIPELINE.set_rank


def _stage(number: int) -> int:
    """The rank of a stage; after the last comes the first."""
    return int(groups.PIPELINE.group().ranks[number % get_pipeline_model_parallel_world_size()])


def get_pipeline_model_parallel_first_rank() -> int:
    """Returns the rank of the first stage."""
    return _stage(0)


def get_pipeline_model_parallel_last_rank() -> int:
    """Returns the rank of the last stage."""
    return _stage(-1)


def get_pipeline_model_parallel_next_rank() -> int:
    """Returns the rank of the stage after this one; after the last comes the first."""
    return _stage(get_pipeline_model_parallel_rank() + 1)


def get_pipeline_model_parallel_prev_rank() -> int:
    """Returns the rank of the stage before this one; before the first comes the last."""
    return _stage(get_pipeline_model_parallel_rank() - 1)


def get_virtual_pipeline_model_parallel_rank() -> int | None:
    """Returns which of the rank's stages runs; None without interleaving."""
    return groups.current().virtual_rank


def set_virtual_pipeline_model_parallel_rank(rank: int | None) -> None:
    """Says which of the rank's stages runs."""
    groups.current().virtual_rank = rank


def get_virtual_pipeline_model_parallel_world_size() -> int | None:
    """Returns how many stages the rank has; None without interleaving."""
    return groups.current().virtual_size


def set_virtual_pipeline_model_parallel_world_size(world_size: int | None) -> None:
    """Says how many stages the rank has."""
    groups.current().virtual_size = world_size


def _is_virtual(ignore_virtual: bool, vp_stage: int | None, wanted: int) -> bool:
    """Says whether a stage is the wanted one of those that a rank has."""
    size = get_virtual_pipeline_model_parallel_world_size()
    if ignore_virtual or size is None:
        return True
    assert vp_stage is not None, "vp_stage must be passed if virtual pipeline is enabled"
    return vp_stage == wanted % size


def is_pipeline_first_stage(ignore_virtual: bool = True, vp_stage: int | None = None) -> bool:
    """Says whether the rank, or with interleaving a stage of it, is the first of its pipeline."""
    return _is_virtual(ignore_virtual, vp_stage, 0) and get_pipeline_model_parallel_rank() == 0


def is_pipeline_last_stage(ignore_virtual: bool = True, vp_stage: int | None = None) -> bool:
    """Says whether the rank, or with interleaving a stage of it, is the last of its pipeline."""
    last = get_pipeline_model_parallel_world_size() - 1
    return _is_virtual(ignore_virtual, vp_stage, -1) and get_pipeline_model_parallel_rank() == last


def is_rank_in_embedding_group(ignore_virtual: bool = True, vp_stage: int | None = None) -> bool:
    """Says whether the rank has the word embedding; with interleaving, whether a stage of it has: of the first rank of
    the group its first, of the last its last."""
    group = get_embedding_group(check_initialized=False)
    if group is None or ignore_virtual:
        return group is not None
    ends = {group.ranks[-1]: is_pipeline_last_stage, group.ranks[0]: is_pipeline_first_stage}
    return ends[dist.get_rank()](False, vp_stage) if dist.get_rank() in ends else True


def is_rank_in_position_embedding_group() -> bool:
    """Says whether the rank has the position embedding."""
    return get_position_embedding_group(check_initialized=False) is not None


# -- experts of a mixture, which are arranged anew

get_expert_model_parallel_group = groups.EXPERT_MODEL.group
get_expert_model_parallel_src_rank = groups.EXPERT_MODEL.first_rank
get_expert_model_parallel_world_size = groups.EXPERT_MODEL.size
set_expert_model_parallel_world_size = groups.EXPERT_MODEL.set_size
get_expert_model_parallel_rank = groups.EXPERT_MODEL.rank
set_expert_model_parallel_rank = groups.EXPERT_MODEL.set_rank

get_expert_tensor_parallel_group = groups.EXPERT_TENSOR.group
get_expert_tensor_parallel_world_size = groups.EXPERT_TENSOR.size
set_expert_tensor_parallel_world_size = groups.EXPERT_TENSOR.set_size
get_expert_tensor_parallel_rank = groups.EXPERT_TENSOR.rank
set_expert_tensor_parallel_rank = groups.EXPERT_TENSOR.set_rank

get_expert_tensor_and_model_parallel_group = groups.EXPERT_TENSOR_AND_MODEL.group
get_expert_tensor_and_model_parallel_world_size = groups.EXPERT_TENSOR_AND_MODEL.size
get_expert_tensor_and_model_parallel_rank = groups.EXPERT_TENSOR_AND_MODEL.rank
get_expert_tensor_model_pipeline_parallel_group = groups.EXPERT_TENSOR_MODEL_PIPELINE.group

get_intra_distributed_optimizer_instance_group = groups.INTRA_INSTANCE.group
get_inter_distributed_optimizer_instance_group = groups.INTER_INSTANCE.group


def _expert_data(partial_expert_data_parallel: bool) -> Kind:
    return groups.PARTIAL_EXPERT_DATA if partial_expert_data_parallel else groups.EXPERT_DATA


def get_expert_data_parallel_group(check_initialized: bool = True, partial_expert_data_parallel: bool = False) -> Any:
    """Returns the ranks that have the same parts of the same experts, and other data."""
    return _expert_data(partial_expert_data_parallel).group(check_initialized)


def get_expert_data_parallel_group_gloo(partial_expert_data_parallel: bool = False) -> Any:
    """Returns the group of the same ranks for tensors of hosts."""
    return _expert_data(partial_expert_data_parallel).host_group()


def get_expert_data_parallel_world_size(partial_expert_data_parallel: bool = False) -> int:
    """Returns the number of ranks in the group; 0 without a default process group."""
    return _expert_data(partial_expert_data_parallel).size()


def get_expert_data_parallel_rank(partial_expert_data_parallel: bool = False) -> int:
    """Returns the rank's number in the group; 0 without a default process group."""
    return _expert_data(partial_expert_data_parallel).rank()


__all__ = [
    "RankGenerator",
    *(name for name in dir() if name.partition("_")[0] in ("get", "set", "is", "initialize", "destroy", "model")),
]
