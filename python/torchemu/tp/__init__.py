"""Megatron's tensor parallelism: layers whose parameters are divided among ranks, and the groups that ranks form.

A program makes the groups with ``parallel_state.initialize_model_parallel`` on every rank, and then its layers. What
Megatron keeps in globals of the process belongs to the running rank here. Inside a run the same is importable as
``megatron.core.parallel_state`` and ``megatron.core.tensor_parallel``, unless Megatron itself is installed, and as
``kernbench.tp``.
"""

from torchemu.tp import cross_entropy as cross_entropy
from torchemu.tp import layers as layers
from torchemu.tp import mappings as mappings
from torchemu.tp import parallel_state as parallel_state
from torchemu.tp import primitives as primitives
from torchemu.tp import random as random
from torchemu.tp._sizes import (
    VocabUtility,
    divide,
    gather_split_1d_tensor,
    split_tensor_along_last_dim,
    split_tensor_into_1d_equal_chunks,
)
from torchemu.tp.config import ModelParallelConfig, TransformerConfig
from torchemu.tp.cross_entropy import vocab_parallel_cross_entropy
from torchemu.tp.layers import (
    ColumnParallelLinear,
    RowParallelLinear,
    VocabParallelEmbedding,
    copy_tensor_model_parallel_attributes,
    linear_with_grad_accumulation_and_async_allreduce,
    param_is_not_tensor_parallel_duplicate,
    set_defaults_if_not_set_tensor_model_parallel_attributes,
    set_tensor_model_parallel_attributes,
)
from torchemu.tp.mappings import (
    all_gather_last_dim_from_tensor_parallel_region,
    all_to_all,
    all_to_all_hp2sp,
    all_to_all_sp2hp,
    copy_to_tensor_model_parallel_region,
    gather_from_sequence_parallel_region,
    gather_from_tensor_model_parallel_region,
    reduce_from_tensor_model_parallel_region,
    reduce_scatter_last_dim_to_tensor_parallel_region,
    reduce_scatter_to_sequence_parallel_region,
    scatter_to_sequence_parallel_region,
    scatter_to_tensor_model_parallel_region,
)
from torchemu.tp.random import (
    CheckpointFunction,
    checkpoint,
    get_cuda_rng_tracker,
    get_expert_parallel_rng_tracker_name,
    model_parallel_cuda_manual_seed,
)

__all__ = [
    "CheckpointFunction",
    "ColumnParallelLinear",
    "ModelParallelConfig",
    "RowParallelLinear",
    "TransformerConfig",
    "VocabParallelEmbedding",
    "VocabUtility",
    "all_gather_last_dim_from_tensor_parallel_region",
    "all_to_all",
    "all_to_all_hp2sp",
    "all_to_all_sp2hp",
    "checkpoint",
    "copy_tensor_model_parallel_attributes",
    "copy_to_tensor_model_parallel_region",
    "divide",
    "gather_from_sequence_parallel_region",
    "gather_from_tensor_model_parallel_region",
    "gather_split_1d_tensor",
    "get_cuda_rng_tracker",
    "get_expert_parallel_rng_tracker_name",
    "linear_with_grad_accumulation_and_async_allreduce",
    "model_parallel_cuda_manual_seed",
    "param_is_not_tensor_parallel_duplicate",
    "reduce_from_tensor_model_parallel_region",
    "reduce_scatter_last_dim_to_tensor_parallel_region",
    "reduce_scatter_to_sequence_parallel_region",
    "scatter_to_sequence_parallel_region",
    "scatter_to_tensor_model_parallel_region",
    "set_defaults_if_not_set_tensor_model_parallel_attributes",
    "set_tensor_model_parallel_attributes",
    "split_tensor_along_last_dim",
    "split_tensor_into_1d_equal_chunks",
    "vocab_parallel_cross_entropy",
]
