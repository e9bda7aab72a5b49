"""Linear layers and an embedding whose parameters are divided among the ranks of a tensor parallel group."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import torchemu.frontends.numpy as torch
from torchemu.frontends.numpy._tensor.core import Tensor
from torchemu.frontends.numpy.distributed import ProcessGroup
from torchemu.frontends.numpy.nn import Module, Parameter
from torchemu.tp._linear import (
    LinearWithFrozenWeight,
    LinearWithGradAccumulationAndAsyncCommunication,
    column_linear,
    linear_with_frozen_weight,
    linear_with_grad_accumulation_and_async_allreduce,
)
from torchemu.tp._planned import Planned, Recorded
from torchemu.tp._sizes import VocabUtility, divide, group_or_default
from torchemu.tp._weights import (
    _initialize_affine_weight_cpu,
    _initialize_affine_weight_gpu,
    copy_tensor_model_parallel_attributes,
    empty_parameter,
    param_is_not_tensor_parallel_duplicate,
    set_defaults_if_not_set_tensor_model_parallel_attributes,
    set_tensor_model_parallel_attributes,
)
from torchemu.tp.config import ModelParallelConfig
from torchemu.tp.plans import execute, plans

__all__ = [
    "ColumnParallelLinear",
    "LinearWithFrozenWeight",
    "LinearWithGradAccumulationAndAsyncCommunication",
    "RowParallelLinear",
    "VocabParallelEmbedding",
    "copy_tensor_model_parallel_attributes",
    "linear_with_frozen_weight",
    "linear_with_grad_accumulation_and_async_allreduce",
    "param_is_not_tensor_parallel_duplicate",
    "set_defaults_if_not_set_tensor_model_parallel_attributes",
    "set_tensor_model_parallel_attributes",
]

Init = Callable[[Tensor], Any]

_NO_FUSION = (
    "{} was called with gradient_accumulation_fusion set to True but the custom CUDA extension "
    "fused_weight_gradient_mlp_cuda module is not found."
)


class VocabParallelEmbedding(Module):
    """A table with a row for each token, of which each rank has a part.

    Args:
        num_embeddings, embedding_dim: rows and columns of the whole table.
        init_method: fills it.
        reduce_scatter_embeddings: ranks get parts of the sequence, which becomes the first dimension.
        config: dtype, and where parameters begin.
        tp_group: the ranks; None: the tensor model parallel group.
        pg_collection: another way to say it: its attribute tp.

    Attributes:
        weight: [num_embeddings / n, embedding_dim].
        vocab_start_index, vocab_end_index: which rows these are.

    Raises:
        AssertionError: the rows cannot be divided.
    """

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        *,
        init_method: Init,
        reduce_scatter_embeddings: bool = False,
        config: ModelParallelConfig,
        tp_group: ProcessGroup | None = None,
        pg_collection: Any = None,
    ) -> None:
        super().__init__()
        self.num_embeddings, self.embedding_dim = num_embeddings, embedding_dim
        self.reduce_scatter_embeddings = reduce_scatter_embeddings
        self.tp_group = _group(tp_group, pg_collection)
        self.tensor_model_parallel_size = self.tp_group.size()
        self.vocab_start_index, self.vocab_end_index = VocabUtility.vocab_range_from_global_vocab_size(
            num_embeddings, self.tp_group.rank(), self.tensor_model_parallel_size
        )
        self.num_embeddings_per_partition = self.vocab_end_index - self.vocab_start_index
        self.deterministic_mode = config.deterministic_mode
        self.weight = empty_parameter((self.num_embeddings_per_partition, embedding_dim), config)
        _initialize(self, (num_embeddings, embedding_dim), 0, init_method, config)

    def forward(self, input_: Tensor) -> Tensor:
        """Looks tokens up.

        Args:
            input_: integers of any shape; with reduce_scatter_embeddings [b, s].

        Returns:
            […, embedding_dim], or with reduce_scatter_embeddings the rank's part of [s, b, embedding_dim].
        """
        part, scatter = self.num_embeddings_per_partition, self.reduce_scatter_embeddings
        both = plans("VocabParallelEmbedding", ranks=self.tp_group.size(), part=part, reduce_scatter_embeddings=scatter)
        return execute(both.forward, Recorded(self.tp_group), (input_, self.weight))[0]["output"]


class _ParallelLinear(Module):
    """What both kinds of linear layers show of themselves, in print and in state dicts: the latter have an entry
    ``_extra_state``, None, as Megatron's."""

    bias: Parameter | None

    def __init__(
        self, sizes: tuple[int, int], config: ModelParallelConfig, group: ProcessGroup | None, collection: Any,
        is_expert: bool, skip_bias_add: bool, name: str | None,
    ) -> None:  # fmt: skip
        super().__init__()
        if config.gradient_accumulation_fusion:
            raise RuntimeError(_NO_FUSION.format(type(self).__name__))
        self.input_size, self.output_size = sizes
        self.config, self.is_expert, self.skip_bias_add, self.name = config, is_expert, skip_bias_add, name
        self.tp_group = _group(group, collection, is_expert)
        several = self.tp_group.size() > 1 or config.expert_model_parallel_size > 1
        self.explicit_expert_comm = is_expert and several  # what is around the layer communicates
        self._register_load_state_dict_pre_hook(
            lambda state_dict, prefix, *_: state_dict.setdefault(f"{prefix}_extra_state", None)
        )

    def get_extra_state(self) -> None:
        """None."""

    def set_extra_state(self, state: Any) -> None:
        """Does nothing."""

    def extra_repr(self) -> str:
        """What print shows of the layer."""
        sizes = f"in_features={self.input_size}, out_features={self.output_size}"
        return f"{sizes}, bias={self.bias is not None}, TP={self.tp_group.size()}"


class ColumnParallelLinear(_ParallelLinear):
    """y = x·Wᵀ + b, where each rank has a part of the outputs: rows of W and elements of b.

    Args:
        input_size, output_size: of the whole layer.
        config: dtype, where parameters begin, sequence parallelism.
        init_method: fills the weight.
        bias: add one, which begins as zeros.
        gather_output: every rank gets the whole output.
        stride: pieces that the rank's part of the weight consists of, as for fused projections.
        keep_master_weight_for_test: keep the whole weight, where it was made on the host, as master_weight.
        skip_bias_add: forward returns the bias for the caller to add.
        skip_weight_param_allocation: the weight is passed to forward.
        is_expert: the layer is part of an expert, whose ranks communicate themselves where there are several experts.
        disable_grad_reduce: the gradient of the input stays the rank's share of it.
        tp_group: the ranks; None: the tensor model parallel group, or that of experts.
        pg_collection: another way to say it: its attribute tp, or expt_tp.
        output_dtype: of the output; None: of the input.
        embedding_activation_buffer, grad_output_buffer, tp_comm_buffer_name, name: mean nothing here.

    Attributes:
        weight: [output_size / n, input_size]; None with skip_weight_param_allocation.
        bias: [output_size / n], or None.

    Raises:
        AssertionError: the outputs cannot be divided.
        RuntimeError: config.gradient_accumulation_fusion.
    """

    def __init__(
        self,
        input_size: int,
        output_size: int,
        *,
        config: ModelParallelConfig,
        init_method: Init,
        bias: bool = True,
        gather_output: bool = False,
        stride: int = 1,
        keep_master_weight_for_test: bool = False,
        skip_bias_add: bool = False,
        skip_weight_param_allocation: bool = False,
        embedding_activation_buffer: Any = None,
        grad_output_buffer: Any = None,
        is_expert: bool = False,
        tp_comm_buffer_name: str | None = None,
        disable_grad_reduce: bool = False,
        tp_group: ProcessGroup | None = None,
        name: str | None = None,
        output_dtype: torch.dtype | None = None,
        pg_collection: Any = None,
    ) -> None:
        super().__init__((input_size, output_size), config, tp_group, pg_collection, is_expert, skip_bias_add, name)
        self.gather_output, self.disable_grad_reduce = gather_output, disable_grad_reduce
        self.output_dtype = output_dtype
        self.output_size_per_partition = divide(output_size, self.tp_group.size())
        self.weight: Parameter | None = None
        if not skip_weight_param_allocation:
            self.weight = empty_parameter((self.output_size_per_partition, input_size), config)
            shape = (output_size, input_size)
            master = _initialize(self, shape, 0, init_method, config, stride, keep_master_weight_for_test)
            self.master_weight = master
        self.register_parameter("bias", _zeros(self, self.output_size_per_partition, config) if bias else None)
        if self.bias is not None:
            set_tensor_model_parallel_attributes(self.bias, True, 0, stride)
        self.sequence_parallel = _is_sequence_parallel(config, self.tp_group)
        self.allreduce_dgrad = self.tp_group.size() > 1 and not self.sequence_parallel and not disable_grad_reduce

    def forward(
        self, input_: Tensor, weight: Tensor | None = None, runtime_gather_output: bool | None = None
    ) -> tuple[Tensor, Parameter | None]:
        """Computes the output.

        Args:
            input_: […, input_size]; with sequence parallelism the rank's part along the first dimension.
            weight: instead of the layer's own.
            runtime_gather_output: instead of gather_output.

        Returns:
            the output, […, output_size / n] or whole; and the bias that is left to add, or None.

        Raises:
            RuntimeError: there is no weight, or it has another shape.
        """
        weight = self._checked(weight)
        gather = self.gather_output if runtime_gather_output is None else runtime_gather_output
        assert not (gather and self.sequence_parallel), "gather_output and sequence_parallel exclude each other"
        output = column_linear(
            input_,
            weight,
            None if self.skip_bias_add else self.bias,
            self.tp_group,
            self.output_dtype,
            gather_output=gather,
            sequence_parallel=self.sequence_parallel,
            explicit_expert_comm=self.explicit_expert_comm,
            disable_grad_reduce=not self.allreduce_dgrad,
        )
        return output, self.bias if self.skip_bias_add else None

    def _checked(self, weight: Tensor | None) -> Tensor:
        """The weight that was passed, or the layer's own."""
        if weight is None:
            if self.weight is None:
                raise RuntimeError(
                    "weight was not supplied to ColumnParallelLinear forward pass and skip_weight_param_allocation is "
                    "True."
                )
            return self.weight
        expected_shape = (self.output_size_per_partition, self.input_size)
        if tuple(weight.shape) != expected_shape:
            raise RuntimeError(f"supplied weight's shape is {tuple(weight.shape)}, not {expected_shape} as expected")
        return weight


class RowParallelLinear(_ParallelLinear):
    """y = x·Wᵀ + b, where each rank has a part of the inputs: columns of W. All ranks have b.

    Args:
        input_size, output_size: of the whole layer.
        config: dtype, where parameters begin, sequence parallelism.
        init_method: fills the weight.
        bias: add one, which begins as zeros.
        input_is_parallel: each rank has its part of the input already.
        skip_bias_add: forward returns the bias for the caller to add.
        stride: pieces that the rank's part of the weight consists of.
        keep_master_weight_for_test: keep the whole weight, where it was made on the host, as master_weight.
        is_expert: the layer is part of an expert, whose ranks communicate themselves where there are several experts.
        tp_group: the ranks; None: the tensor model parallel group, or that of experts.
        pg_collection: another way to say it: its attribute tp, or expt_tp.
        tp_comm_buffer_name, name: mean nothing here.

    Attributes:
        weight: [output_size, input_size / n].
        bias: [output_size], or None.

    Raises:
        AssertionError: the inputs cannot be divided.
        RuntimeError: sequence parallelism without input_is_parallel; config.gradient_accumulation_fusion.
    """

    def __init__(
        self,
        input_size: int,
        output_size: int,
        *,
        config: ModelParallelConfig,
        init_method: Init,
        bias: bool,
        input_is_parallel: bool,
        skip_bias_add: bool,
        stride: int = 1,
        keep_master_weight_for_test: bool = False,
        is_expert: bool = False,
        tp_comm_buffer_name: str | None = None,
        tp_group: ProcessGroup | None = None,
        name: str | None = None,
        pg_collection: Any = None,
    ) -> None:
        super().__init__((input_size, output_size), config, tp_group, pg_collection, is_expert, skip_bias_add, name)
        self.input_is_parallel, self.sequence_parallel = input_is_parallel, config.sequence_parallel
        if self.sequence_parallel and not input_is_parallel:
            raise RuntimeError("To enable `sequence_parallel`, `input_is_parallel` must be `True`")
        self.input_size_per_partition = divide(input_size, self.tp_group.size())
        self.weight = empty_parameter((output_size, self.input_size_per_partition), config)
        shape = (output_size, input_size)
        self.master_weight = _initialize(self, shape, 1, init_method, config, stride, keep_master_weight_for_test)
        shared = _zeros(self, output_size, config) if bias else None
        if shared is not None:
            shared.sequence_parallel = self.sequence_parallel
        self.register_parameter("bias", shared)

    def forward(self, input_: Tensor) -> tuple[Tensor, Parameter | None]:
        """Computes the output.

        Args:
            input_: […, input_size], or with input_is_parallel the rank's part of it, […, input_size / n].

        Returns:
            the output, […, output_size], with sequence parallelism the rank's part along the first dimension; and the
            bias that is left to add, or None.
        """
        assert self.input_is_parallel or not self.sequence_parallel, "sequence_parallel needs input_is_parallel"
        assert self.skip_bias_add or not self.explicit_expert_comm, (
            "experts whose ranks communicate themselves need skip_bias_add"
        )
        added = [self.bias] if self.bias is not None and not self.skip_bias_add else []
        both = plans(
            "RowParallelLinear",
            ranks=self.tp_group.size(),
            input_is_parallel=self.input_is_parallel,
            sequence_parallel=self.sequence_parallel,
            explicit_expert_comm=self.explicit_expert_comm,
            bias=bool(added),
            input_grad=input_.requires_grad,
            weight_grad=self.weight.requires_grad,
            bias_grad=any(bias.requires_grad for bias in added),
        )
        output = Planned.apply(both, self.tp_group, input_, self.weight, *added)
        return output, self.bias if self.skip_bias_add else None


def _group(group: ProcessGroup | None, collection: Any, is_expert: bool = False) -> ProcessGroup:
    """The ranks of a layer, however they are given."""
    if group is None and collection is not None:
        group = collection.expt_tp if is_expert else collection.tp
    return group_or_default(group, is_expert)


def _is_sequence_parallel(config: ModelParallelConfig, group: ProcessGroup) -> bool:
    if config.sequence_parallel and group.size() <= 1:
        warnings.warn(
            f"`sequence_parallel` is set to `True`, but tensor model parallel size is {group.size()}. Disabling "
            "sequence parallel.",
            stacklevel=3,
        )
        return False
    return config.sequence_parallel


def _initialize(
    layer: Any,
    shape: tuple[int, int],
    dim: int,
    init_method: Init,
    config: ModelParallelConfig,
    stride: int = 1,
    keep: bool = False,
) -> Tensor | None:
    """Fills a layer's weight, the part along dim of one of that shape; returns the whole one if it is kept."""
    weight, is_expert = layer.weight, getattr(layer, "is_expert", False)
    weight.allreduce = not (is_expert and config.expert_model_parallel_size > 1)
    if not config.perform_initialization:
        set_tensor_model_parallel_attributes(weight, True, dim, stride)
        return None
    if not config.use_cpu_initialization:
        _initialize_affine_weight_gpu(weight, init_method, dim, stride, is_expert)
        return None
    group = layer.tp_group
    return _initialize_affine_weight_cpu(
        weight,
        *shape,
        weight.size(dim),
        dim,
        init_method,
        stride,
        keep,
        params_dtype=config.params_dtype,
        rank=group.rank(),
        world_size=group.size(),
    )


def _zeros(layer: Any, size: int, config: ModelParallelConfig) -> Any:
    """A bias."""
    bias: Any = empty_parameter((size,), config)
    if config.perform_initialization:
        with torch.no_grad():
            bias.zero_()
    bias.allreduce = not (layer.is_expert and config.expert_model_parallel_size > 1)
    return bias
