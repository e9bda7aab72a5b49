"""Megatron's parallel_state: the groups of ranks in model and data parallelism, as the running rank is in them.

The state belongs to a rank, as the globals of a process do. All getters raise an AssertionError where a rank has no
such group; ranks are numbers in the default process group unless something else is said.
"""

from __future__ import annotations

import operator
import warnings
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

from torchemu.frontends.numpy import distributed as dist
from torchemu.tp import _initialize, _memory_buffer, _state
from torchemu.tp._getters import (
    first_rank_getter,
    group_getter,
    publish,
    rank_getter,
    rank_setter,
    size_getter,
    size_setter,
)
from torchemu.tp._initialize import gloo as _gloo
from torchemu.tp._memory_buffer import *  # noqa: F403
from torchemu.tp.rank_generator import RankGenerator as RankGenerator

Ranks = Callable[[list[int]], Sequence[int]]


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
    get_embedding_ranks: Ranks | None = None,
    get_position_embedding_ranks: Ranks | None = None,
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
    given = {name: value for name, value in locals().items() if name in _initialize.SIZES and value is not None}
    timeout = timedelta(minutes=distributed_timeout_minutes)
    choices = (get_embedding_ranks, get_position_embedding_ranks, timeout, create_gloo_process_groups)
    _check_backend(pipeline_model_parallel_comm_backend)
    given |= {name: _counted(name, value) for name, value in given.items() if name in _initialize.COUNTS}
    _initialize.initialize(given, _initialize.Choices(*choices))


def _counted(name: str, value: Any) -> int:
    """How many.

    Raises:
        TypeError: it is no integer. RuntimeError: it is below 1.
    """
    try:
        number = operator.index(value)
    except TypeError:
        raise TypeError(f"{name} must be an integer, not {value!r}") from None
    if number < 1:
        raise RuntimeError(f"{name} is {number}: it must be at least 1")
    return number


def _check_backend(backend: str | None) -> None:
    assert backend in (None, "nccl", "ucc"), f'"{backend}" backend for PP communication is currently not supported'


def is_initialized() -> bool:
    """Whether the rank has groups."""
    return _state.current().initialize is not None


def is_unitialized() -> bool:
    """Whether the rank has no groups. (The name is Megatron's.)"""
    return not is_initialized()


def model_parallel_is_initialized() -> bool:
    """Whether the rank has groups for tensor, pipeline and data parallelism."""
    return is_initialized()


def destroy_model_parallel() -> None:
    """Forgets the groups, and what was set."""
    _state.replace(_state.State())


# -- groups


get_model_parallel_group = group_getter(_state.MODEL, "the ranks that have one copy of the model")
get_tensor_model_parallel_group = group_getter(_state.TENSOR, "the ranks that have parts of the same layers")
get_pipeline_model_parallel_group = group_getter(_state.PIPELINE, "the ranks that have the stages of one pipeline")


def _data(with_context_parallel: bool, partial_data_parallel: bool) -> str:
    """The kind of a data parallel group."""
    if not with_context_parallel:
        assert not partial_data_parallel, "Partial DP for Optimizer needs to include CP"
        return _state.DATA
    return _state.INTRA_PARTIAL_DATA if partial_data_parallel else _state.DATA_WITH_CONTEXT


def get_data_parallel_group(with_context_parallel: bool = False, partial_data_parallel: bool = False) -> Any:
    """The ranks that have the same parameters, and other data."""
    return _state.group(_data(with_context_parallel, partial_data_parallel))


def get_data_parallel_group_gloo(with_context_parallel: bool = False, partial_data_parallel: bool = False) -> Any:
    """The same ranks, for tensors of hosts."""
    return _state.group(_gloo(_data(with_context_parallel, partial_data_parallel)))


get_context_parallel_group = group_getter(_state.CONTEXT, "the ranks that have parts of the same sequences")


def get_context_parallel_global_ranks(check_initialized: bool = True) -> list[int] | None:
    """The ranks of the context parallel group."""
    group = get_context_parallel_group(check_initialized)
    return None if group is None else list(group.ranks)


def get_hierarchical_context_parallel_groups(check_initialized: bool = True) -> list[Any]:
    """The rank's groups on the levels of the hierarchy, from the innermost on."""
    levels = _state.current().levels
    assert levels or not check_initialized, "hierarchical context parallel groups are not initialized"
    return levels


def get_hybrid_data_context_parallel_groups(check_initialized: bool = True, group_size: int | None = None) -> Any:
    """The rank's group of so many ranks with data and context parallelism between them."""
    if group_size is not None and get_data_parallel_world_size(with_context_parallel=True) == group_size:
        return get_data_parallel_group(with_context_parallel=True)
    found = None if group_size is None else _state.current().hybrid.get(group_size)
    assert found is not None or not check_initialized, (
        f"hybrid data context parallel group of {group_size} ranks is not initialized"
    )
    return found


get_embedding_group = group_getter(
    _state.EMBEDDING, "the ranks of the pipeline that have the word embedding; only they may ask"
)
get_position_embedding_group = group_getter(
    _state.POSITION_EMBEDDING, "the ranks of the pipeline that have the position embedding; only they may ask"
)


def get_tensor_and_data_parallel_group(check_initialized: bool = True, with_context_parallel: bool = False) -> Any:
    """The ranks of one pipeline stage, with context parallelism or without."""
    kind = "tensor and data parallel" + " with context parallel" * with_context_parallel
    return _state.group(kind, check_initialized)


get_tensor_and_context_parallel_group = group_getter(
    _state.TENSOR_AND_CONTEXT, "the ranks among which a layer and its sequences are divided"
)


def get_amax_reduction_group(with_context_parallel: bool = False, tp_only_amax_red: bool = False) -> Any:
    """The ranks that agree on the scales of float8."""
    if tp_only_amax_red:
        kind = _state.TENSOR_AND_CONTEXT if with_context_parallel else _state.TENSOR
    else:
        kind = "tensor and data parallel" + " with context parallel" * with_context_parallel
    return _state.group(kind, title="FP8 amax reduction group")


# -- numbers and sizes


get_tensor_model_parallel_world_size = size_getter(_state.TENSOR)
set_tensor_model_parallel_world_size = size_setter(_state.TENSOR)
get_tensor_model_parallel_rank = rank_getter(_state.TENSOR)
set_tensor_model_parallel_rank = rank_setter(_state.TENSOR)
get_pipeline_model_parallel_world_size = size_getter(_state.PIPELINE)
set_pipeline_model_parallel_world_size = size_setter(_state.PIPELINE)
get_pipeline_model_parallel_rank = rank_getter(_state.PIPELINE)
set_pipeline_model_parallel_rank = rank_setter(_state.PIPELINE)


def get_data_parallel_world_size(with_context_parallel: bool = False, partial_data_parallel: bool = False) -> int:
    """The number of ranks in the group; 0 without a default process group."""
    return _state.size(_data(with_context_parallel, partial_data_parallel)) if dist.is_initialized() else 0


def get_data_parallel_rank(with_context_parallel: bool = False, partial_data_parallel: bool = False) -> int:
    """The rank's number in the group, unless another was set; 0 without a default process group."""
    chosen = _state.current().ranks.get(_state.DATA)
    if chosen is not None:
        return chosen
    return _state.rank(_data(with_context_parallel, partial_data_parallel)) if dist.is_initialized() else 0


set_data_parallel_rank = rank_setter(_state.DATA)
get_context_parallel_world_size = size_getter(_state.CONTEXT, alone=0)
get_context_parallel_rank = rank_getter(_state.CONTEXT, alone=0)
get_tensor_and_context_parallel_world_size = size_getter(_state.TENSOR_AND_CONTEXT, alone=0)
get_tensor_and_context_parallel_rank = rank_getter(_state.TENSOR_AND_CONTEXT, alone=0)


def get_all_ranks() -> str:
    """The rank's numbers in its tensor, data, context, pipeline and expert parallel groups: "0_1_0_0_0"."""
    kinds = (_state.TENSOR, _state.DATA, _state.CONTEXT, _state.PIPELINE, _state.EXPERT_MODEL)
    return "_".join(str(_state.rank(kind)) for kind in kinds)


# -- from where what all ranks of a group are to have is broadcast


get_tensor_model_parallel_src_rank = first_rank_getter(_state.TENSOR)
get_model_parallel_src_rank = first_rank_getter(_state.MODEL)


def get_data_parallel_src_rank(with_context_parallel: bool = False) -> int:
    """The first rank of the group."""
    return _state.first_rank(_data(with_context_parallel, False))


# -- pipelines


def _stage(number: int) -> int:
    """The rank of a stage; after the last comes the first."""
    group = _state.group(_state.PIPELINE, title="Pipeline parallel group")
    return group.ranks[number % get_pipeline_model_parallel_world_size()]


def get_pipeline_model_parallel_first_rank() -> int:
    """The rank of the first stage."""
    return _stage(0)


def get_pipeline_model_parallel_last_rank() -> int:
    """The rank of the last stage."""
    return _stage(-1)


def get_pipeline_model_parallel_next_rank() -> int:
    """The rank of the stage after this one; after the last comes the first."""
    return _stage(get_pipeline_model_parallel_rank() + 1)


def get_pipeline_model_parallel_prev_rank() -> int:
    """The rank of the stage before this one; before the first comes the last."""
    return _stage(get_pipeline_model_parallel_rank() - 1)


def get_virtual_pipeline_model_parallel_rank() -> int | None:
    """Which of the rank's stages runs; None without interleaving."""
    return _state.current().virtual_rank


def set_virtual_pipeline_model_parallel_rank(rank: int | None) -> None:
    """Says which of the rank's stages runs."""
    _state.current().virtual_rank = rank


def get_virtual_pipeline_model_parallel_world_size() -> int | None:
    """How many stages the rank has; None without interleaving."""
    return _state.current().virtual_size


def set_virtual_pipeline_model_parallel_world_size(world_size: int | None) -> None:
    """Says how many stages the rank has."""
    _state.current().virtual_size = world_size


def _is_virtual(ignore_virtual: bool, vp_stage: int | None, wanted: int) -> bool:
    """Whether the stage is the wanted one of those that a rank has."""
    size = get_virtual_pipeline_model_parallel_world_size()
    if ignore_virtual or size is None:
        return True
    assert vp_stage is not None, "vp_stage must be passed if virtual pipeline is enabled"
    return vp_stage == wanted % size


def is_pipeline_first_stage(ignore_virtual: bool = True, vp_stage: int | None = None) -> bool:
    """Whether the rank, or with interleaving a stage of it, is the first of its pipeline."""
    return _is_virtual(ignore_virtual, vp_stage, 0) and get_pipeline_model_parallel_rank() == 0


def is_pipeline_last_stage(ignore_virtual: bool = True, vp_stage: int | None = None) -> bool:
    """Whether the rank, or with interleaving a stage of it, is the last of its pipeline."""
    last = get_pipeline_model_parallel_world_size() - 1
    return _is_virtual(ignore_virtual, vp_stage, -1) and get_pipeline_model_parallel_rank() == last


def is_rank_in_embedding_group(ignore_virtual: bool = True, vp_stage: int | None = None) -> bool:
    """Whether the rank has the word embedding; with interleaving, whether a stage of it has: of the first rank of the
    group its first, of the last its last."""
    group = get_embedding_group(check_initialized=False)
    if group is None or ignore_virtual:
        return group is not None
    ends = {group.ranks[-1]: is_pipeline_last_stage, group.ranks[0]: is_pipeline_first_stage}
    return ends[dist.get_rank()](False, vp_stage) if dist.get_rank() in ends else True


def is_rank_in_position_embedding_group() -> bool:
    """Whether the rank has the position embedding."""
    return get_position_embedding_group(check_initialized=False) is not None


# -- experts of a mixture, which are arranged anew


get_expert_model_parallel_group = group_getter(_state.EXPERT_MODEL, "the ranks that have different experts")
get_expert_model_parallel_src_rank = first_rank_getter(_state.EXPERT_MODEL)
get_expert_model_parallel_world_size = size_getter(_state.EXPERT_MODEL, alone=0)
set_expert_model_parallel_world_size = size_setter(_state.EXPERT_MODEL)
get_expert_model_parallel_rank = rank_getter(_state.EXPERT_MODEL, alone=0)
set_expert_model_parallel_rank = rank_setter(_state.EXPERT_MODEL)
get_expert_tensor_parallel_group = group_getter(_state.EXPERT_TENSOR, "the ranks that have parts of the same experts")


def get_expert_tensor_parallel_world_size() -> int | None:
    """The number of ranks in the group; where there is none, what was set for the tensor model parallel one."""
    known = _state.current()
    alone = _state.EXPERT_TENSOR not in {*known.groups, *known.sizes}
    return known.sizes.get(_state.TENSOR) if alone else _state.size(_state.EXPERT_TENSOR)


set_expert_tensor_parallel_world_size = size_setter(_state.EXPERT_TENSOR)


def get_expert_tensor_parallel_rank() -> int | None:
    """The rank's number in the group; where there is none, what was set for the tensor model parallel one."""
    known = _state.current()
    alone = _state.EXPERT_TENSOR not in {*known.groups, *known.ranks}
    return known.ranks.get(_state.TENSOR) if alone else _state.rank(_state.EXPERT_TENSOR)


set_expert_tensor_parallel_rank = rank_setter(_state.EXPERT_TENSOR)
get_expert_tensor_and_model_parallel_group = group_getter(
    _state.EXPERT_TENSOR_AND_MODEL, "the ranks among which all experts of a layer are divided"
)
get_expert_tensor_and_model_parallel_world_size = size_getter(_state.EXPERT_TENSOR_AND_MODEL, alone=0)
get_expert_tensor_and_model_parallel_rank = rank_getter(_state.EXPERT_TENSOR_AND_MODEL, alone=0)
get_expert_tensor_model_pipeline_parallel_group = group_getter(
    "expert tensor model pipeline parallel", "the ranks that have one copy of the model's experts"
)


def _expert_data(partial_expert_data_parallel: bool) -> str:
    return _state.INTRA_PARTIAL_EXPERT_DATA if partial_expert_data_parallel else _state.EXPERT_DATA


def get_expert_data_parallel_group(check_initialized: bool = True, partial_expert_data_parallel: bool = False) -> Any:
    """The ranks that have the same parts of the same experts, and other data."""
    return _state.group(_expert_data(partial_expert_data_parallel), check_initialized)


def get_data_modulo_expert_parallel_group(partial_expert_data_parallel: bool = False) -> Any:
    """An old name of get_expert_data_parallel_group, with a warning."""
    warnings.warn(
        "get_data_modulo_expert_parallel_group is deprecated, please use get_expert_data_parallel_group instead.",
        DeprecationWarning,
        stacklevel=2,
    )
    return get_expert_data_parallel_group(partial_expert_data_parallel=partial_expert_data_parallel)


def get_expert_data_parallel_group_gloo(partial_expert_data_parallel: bool = False) -> Any:
    """The same ranks, for tensors of hosts."""
    return _state.group(_gloo(_expert_data(partial_expert_data_parallel)))


def get_expert_data_parallel_world_size(partial_expert_data_parallel: bool = False) -> int:
    """The number of ranks in the group; 0 without a default process group."""
    return _state.size(_expert_data(partial_expert_data_parallel)) if dist.is_initialized() else 0


def get_expert_data_parallel_rank(partial_expert_data_parallel: bool = False) -> int:
    """The rank's number in the group; 0 without a default process group."""
    return _state.rank(_expert_data(partial_expert_data_parallel)) if dist.is_initialized() else 0


get_intra_distributed_optimizer_instance_group = group_getter(
    "intra distributed optimizer instance", "the ranks of one instance of the distributed optimizer"
)


def get_inter_distributed_optimizer_instance_group(check_initialized: bool = True) -> Any:
    """The ranks at the same place in each instance of the distributed optimizer; there are several."""
    group = _state.group("inter partial expert data parallel", check=False)
    assert group is not None or not check_initialized, (
        "Attention and MLP/Expert share same inter distributed optimize instance group, which has not been initialized"
    )
    return group


__all__ = ["RankGenerator", *publish(globals()), *_memory_buffer.__all__]
