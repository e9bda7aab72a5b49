"""Megatron's ModelParallelConfig and TransformerConfig, as far as layers look at them.

Fields that mean something on real hardware only are there, so that programs can set them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torchemu.frontends.numpy as torch
from torchemu.tp.utils import Init, init_method_normal, scaled_init_method_normal

__all__ = ["ModelParallelConfig", "TransformerConfig"]


@dataclass
class ModelParallelConfig:
    """The division of a model among ranks, and the beginning of its parameters.

    Attributes:
        tensor_model_parallel_size, pipeline_model_parallel_size, context_parallel_size, expert_model_parallel_size:
            into how many parts.
        virtual_pipeline_model_parallel_size: stages that a rank has; None: one.
        expert_tensor_parallel_size: None: as tensor_model_parallel_size.
        sequence_parallel: activations between tensor parallel layers are divided along the first dimension.
        perform_initialization: parameters get values; else they are as memory is.
        use_cpu_initialization: parameters are made on the host, as parts of a whole that every rank draws.
        params_dtype: of parameters.
        fp16, bf16: the model is trained in short floats.
        pipeline_dtype: of what stages send each other.
        gradient_accumulation_fusion: needs an extension that there is not: layers raise a RuntimeError.
        defer_embedding_wgrad_compute, wgrad_deferral_limit: compute the output layer's gradient later.
        timers, finalize_model_grads_func, grad_scale_func, no_sync_func, grad_sync_func, param_sync_func,
            deterministic_mode, async_tensor_model_parallel_allreduce, cpu_offloading: the program's own.

    Raises:
        ValueError: what excludes each other.
    """

    tensor_model_parallel_size: int = 1
    pipeline_model_parallel_size: int = 1
    virtual_pipeline_model_parallel_size: int | None = None
    sequence_parallel: bool = False
    context_parallel_size: int = 1
    expert_model_parallel_size: int = 1
    expert_tensor_parallel_size: int | None = None
    perform_initialization: bool = True
    use_cpu_initialization: bool = False
    fp16: bool = False
    bf16: bool = False
    params_dtype: torch.dtype = torch.float32
    timers: Any = None
    finalize_model_grads_func: Any = None
    grad_scale_func: Any = None
    no_sync_func: Any = None
    grad_sync_func: Any = None
    param_sync_func: Any = None
    deterministic_mode: bool = False
    gradient_accumulation_fusion: bool = False
    async_tensor_model_parallel_allreduce: bool = False
    pipeline_dtype: torch.dtype | None = None
    defer_embedding_wgrad_compute: bool = False
    wgrad_deferral_limit: int = 0
    cpu_offloading: bool = False

    def __post_init__(self) -> None:
        if self.sequence_parallel and self.tensor_model_parallel_size <= 1:
            raise ValueError("Can not use sequence parallelism without tensor parallelism")
        if self.expert_tensor_parallel_size is None:
            self.expert_tensor_parallel_size = self.tensor_model_parallel_size
        if self.pipeline_model_parallel_size > 1 and self.pipeline_dtype is None:
            raise ValueError("When using pipeline parallelism, pipeline_dtype must be specified")
        if self.defer_embedding_wgrad_compute and self.pipeline_model_parallel_size == 1:
            raise ValueError("Cannot defer embedding wgrad compute when pipeline model parallel is not used")
        if self.defer_embedding_wgrad_compute and not self.gradient_accumulation_fusion:
            raise ValueError("Cannot defer embedding wgrad compute when gradient accumulation fusion is not used")


@dataclass
class TransformerConfig(ModelParallelConfig):
    """The sizes of a transformer.

    Attributes:
        num_layers, hidden_size, num_attention_heads: of the whole model.
        num_query_groups: heads that have keys and values of their own; None: all.
        ffn_hidden_size: None: four times hidden_size.
        kv_channels: size of a head; None: hidden_size / num_attention_heads.
        hidden_dropout, attention_dropout: probabilities.
        layernorm_epsilon: added to variances.
        add_bias_linear: linear layers have biases.
        init_method_std: the deviation of weights at the beginning.
        init_method, output_layer_init_method: fill weights; by default from normal distributions, the second of a
            deviation that is smaller the more layers there are.

    Raises:
        ValueError: heads cannot be divided among the ranks; both fp16 and bf16.
    """

    num_layers: int = 0
    hidden_size: int = 0
    num_attention_heads: int = 0
    num_query_groups: int | None = None
    ffn_hidden_size: int | None = None
    kv_channels: int | None = None
    hidden_dropout: float = 0.1
    attention_dropout: float = 0.1
    layernorm_epsilon: float = 1e-5
    add_bias_linear: bool = True
    init_method_std: float = 0.02
    init_method: Init | None = None
    output_layer_init_method: Init | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.fp16 and self.bf16:
            raise ValueError(f"Only one of self.fp16: {self.fp16} and self.bf16 {self.bf16} should be True.")
        if self.num_query_groups is None:
            self.num_query_groups = self.num_attention_heads
        for name in ("num_attention_heads", "num_query_groups"):
            if getattr(self, name) % self.tensor_model_parallel_size:
                raise ValueError(
                    f"{name} ({getattr(self, name)}) must be a multiple of tensor_model_parallel_size "
                    f"({self.tensor_model_parallel_size})."
                )
        if self.ffn_hidden_size is None:
            self.ffn_hidden_size = 4 * self.hidden_size
        if self.kv_channels is None and self.num_attention_heads:
            self.kv_channels = self.hidden_size // self.num_attention_heads
        if self.init_method is None:
            self.init_method = init_method_normal(self.init_method_std)
        if self.output_layer_init_method is None:
            self.output_layer_init_method = scaled_init_method_normal(self.init_method_std, max(self.num_layers, 1))
