"""Linear layers and an embedding whose parameters are divided among the ranks of a tensor parallel group.

What a pass does, on which ranks and beside what, is a plan of the Go core's; see torchemu.frontends.numpy._plans.
"""

from __future__ import annotations

import warnings
from typing import Any

import torchemu.frontends.numpy as torch
from torchemu.frontends.numpy._tensor.core import Tensor
from torchemu.frontends.numpy.distributed import ProcessGroup
from torchemu.frontends.numpy.nn import Module, Parameter
from torchemu.tp.config import ModelParallelConfig
from torchemu.tp.mappings import planned
from torchemu.tp.utils import Init, VocabUtility, divide, get_tensor_model_parallel_group_if_none
from torchemu.tp.weights import (
    copy_tensor_model_parallel_attributes,
    empty_parameter,
    fill,
    param_is_not_tensor_parallel_duplicate,
    set_defaults_if_not_set_tensor_model_parallel_attributes,
    set_tensor_model_parallel_attributes,
)

__all__ = [
    "ColumnParallelLinear",
    "RowParallelLinear",
    "VocabParallelEmbedding",
    "copy_tensor_model_parallel_attributes",
    "linear_with_grad_accumulation_and_async_allreduce",
    "param_is_not_tensor_parallel_duplicate",
    "set_defaults_if_not_set_tensor_model_parallel_attributes",
    "set_tensor_model_parallel_attributes",
]


def _linear(
    layer: str, group: ProcessGroup, input_: Tensor, weight: Tensor, bias: Tensor | None, **options: Any
) -> Tensor:
    """Computes input_ @ weightᵀ + bias as a layer does. A weight or bias without requires_grad gets no gradient.

    Args:
        layer: the class's name.
        group: the ranks.
        input_, weight, bias: the operands.
        options: of the layer's plans.
    """
    added = [] if bias is None else [bias]
    wanted = {"weight_grad": weight.requires_grad, "bias_grad": any(b.requires_grad for b in added)}
    return planned(layer, group, input_, weight, *added, bias=bool(added), **wanted, **options)


def linear_with_grad_accumulation_and_async_allreduce(
    input: Tensor,  # noqa: A002 (Megatron's name)
    weight: Tensor,
    bias: Tensor | None,
    gradient_accumulation_fusion: bool,
    allreduce_dgrad: bool,
    sequence_parallel: bool,
    grad_output_buffer: list[Tensor] | None = None,
    wgrad_deferral_limit: int | None = 0,
    async_grad_allreduce: bool | None = None,
    tp_group: ProcessGroup | None = None,
) -> Tensor:
    """Computes input @ weightᵀ + bias. While the backward computes the weight's gradient, the input's is added up over
    the ranks; with sequence parallelism inputs are joined once more while the gradient of the input is computed, and
    that is added up and divided while the weight's is.

    Args:
        input: […, in]; with sequence_parallel the rank's part of it along the first dimension.
        weight: [out, in].
        bias: [out].
        gradient_accumulation_fusion: must be false: otherwise a RuntimeError.
        allreduce_dgrad: the gradient of the input is added up over the ranks.
        sequence_parallel: the input is joined first.
        tp_group: the ranks; None: the tensor model parallel group.
        grad_output_buffer, wgrad_deferral_limit: mean nothing here.
        async_grad_allreduce: means nothing any more; a warning says so.
    """
    if async_grad_allreduce is not None:
        warnings.warn(
            "async_grad_allreduce is deprecated, not in use anymore and will be fully removed with 0.11.0. Please use "
            "allreduce_dgrad instead.",
            stacklevel=2,
        )
    if gradient_accumulation_fusion:
        raise RuntimeError("gradient_accumulation_fusion needs the CUDA extension fused_weight_gradient_mlp_cuda")
    how = {"disable_grad_reduce": not allreduce_dgrad, "sequence_parallel": sequence_parallel}
    group = get_tensor_model_parallel_group_if_none(tp_group)
    return _linear("ColumnParallelLinear", group, input, weight, bias, **how)


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
        fill(self.weight, self.tp_group, config, init_method, 0)

    def forward(self, input_: Tensor) -> Tensor:
        """Looks tokens up.

        Args:
            input_: integers of any shape; with reduce_scatter_embeddings [b, s].

        Returns:
            […, embedding_dim], or with reduce_scatter_embeddings the rank's part of [s, b, embedding_dim].
        """
        how = {"part": self.num_embeddings_per_partition, "reduce_scatter_embeddings": self.reduce_scatter_embeddings}
        return planned("VocabParallelEmbedding", self.tp_group, input_, self.weight, **how)


class _ParallelLinear(Module):
    """The common base of both kinds of linear layers, whose arguments these are: of the whole layer, inputs and
    outputs; along which dimension of the weight it is divided; without an init_method there is no weight.

    In state dicts layers have an entry ``_extra_state``, None, as Megatron's.
    """

    layer: str  # whose plans these are, of subclasses too
    weight: Any
    bias: Parameter | None
    sequence_parallel: bool
    skip_bias_add: bool

    def __init__(
        self, sizes: tuple[int, int], dim: int, stride: int, init_method: Init | None, keep: bool,
        config: ModelParallelConfig, group: ProcessGroup | None, collection: Any, is_expert: bool,
    ) -> None:  # fmt: skip
        super().__init__()
        if config.gradient_accumulation_fusion:
            raise RuntimeError(
                f"{type(self).__name__} was called with gradient_accumulation_fusion set to True but the custom CUDA "
                "extension fused_weight_gradient_mlp_cuda module is not found."
            )
        self.input_size, self.output_size = sizes
        self.config, self.is_expert, self.tp_group = config, is_expert, _group(group, collection, is_expert)
        several = self.tp_group.size() > 1 or config.expert_model_parallel_size > 1
        self.explicit_expert_comm = is_expert and several  # what is around the layer communicates
        shape = [self.output_size, self.input_size]
        shape[dim] = divide(shape[dim], self.tp_group.size())
        self.weight, self.master_weight = None, None
        if init_method is not None:
            self.weight = empty_parameter((shape[0], shape[1]), config, is_expert)
            whole = fill(self.weight, self.tp_group, config, init_method, dim, stride, is_expert)
            self.master_weight = whole if keep else None
        self._register_load_state_dict_pre_hook(
            lambda state_dict, prefix, *_: state_dict.setdefault(f"{prefix}_extra_state", None)
        )

    def _add_bias(self, size: int, wanted: bool) -> Any:
        """Registers a bias of zeros, or None."""
        bias = empty_parameter((size,), self.config, self.is_expert) if wanted else None
        if bias is not None and self.config.perform_initialization:
            with torch.no_grad():
                bias.zero_()
        self.register_parameter("bias", bias)
        return bias

    def _output(self, input_: Tensor, weight: Tensor, **options: Any) -> tuple[Tensor, Parameter | None]:
        """Returns the output, and the bias that is left to add, if any."""
        left = self.bias if self.skip_bias_add else None
        added = None if self.skip_bias_add else self.bias
        how = {"sequence_parallel": self.sequence_parallel, "explicit_expert_comm": self.explicit_expert_comm}
        return _linear(self.layer, self.tp_group, input_, weight, added, **how, **options), left

    def get_extra_state(self) -> None:
        """Returns None."""

    def set_extra_state(self, state: Any) -> None:
        """Does nothing."""

    def extra_repr(self) -> str:
        """Returns what print shows of the layer."""
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

    layer = "ColumnParallelLinear"
    weight: Parameter | None

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
        fills = None if skip_weight_param_allocation else init_method
        whole = (input_size, output_size), 0, stride, fills, keep_master_weight_for_test
        super().__init__(*whole, config, tp_group, pg_collection, is_expert)
        self.gather_output, self.skip_bias_add, self.output_dtype = gather_output, skip_bias_add, output_dtype
        self.disable_grad_reduce, self.name = disable_grad_reduce, name
        self.output_size_per_partition = divide(output_size, self.tp_group.size())
        own = self._add_bias(self.output_size_per_partition, bias)
        if own is not None:
            set_tensor_model_parallel_attributes(own, True, 0, stride)
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
        dtypes = {}
        if self.output_dtype is not None:
            dtypes = {"dtype": weight.dtype.name, "output_dtype": self.output_dtype.name}
        how = {"gather_output": gather, "disable_grad_reduce": not self.allreduce_dgrad}
        return self._output(input_, weight, **how, **dtypes)

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
        input_is_parallel: each rank has its part of the input already.
        others: as ColumnParallelLinear's.

    Attributes:
        weight: [output_size, input_size / n].
        bias: [output_size], or None.

    Raises:
        AssertionError: the inputs cannot be divided.
        RuntimeError: sequence parallelism without input_is_parallel; config.gradient_accumulation_fusion.
    """

    layer = "RowParallelLinear"
    weight: Parameter

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
        whole = (input_size, output_size), 1, stride, init_method, keep_master_weight_for_test
        super().__init__(*whole, config, tp_group, pg_collection, is_expert)
        self.input_is_parallel, self.skip_bias_add, self.name = input_is_parallel, skip_bias_add, name
        self.sequence_parallel = config.sequence_parallel
        if self.sequence_parallel and not input_is_parallel:
            raise RuntimeError("To enable `sequence_parallel`, `input_is_parallel` must be `True`")
        self.input_size_per_partition = divide(input_size, self.tp_group.size())
        own = self._add_bias(output_size, bias)
        if own is not None:
            own.sequence_parallel = self.sequence_parallel

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
        how = {"input_is_parallel": self.input_is_parallel, "input_grad": input_.requires_grad}
        return self._output(input_, self.weight, **how)


def _group(group: ProcessGroup | None, collection: Any, is_expert: bool = False) -> ProcessGroup:
    """The ranks of a layer, however they are given."""
    if group is None and collection is not None:
        group = collection.expt_tp if is_expert else collection.tp
    return get_tensor_model_parallel_group_if_none(group, is_expert)


def _is_sequence_parallel(config: ModelParallelConfig, group: ProcessGroup) -> bool:
    if config.sequence_parallel and group.size() <= 1:
        warnings.warn(
            f"`sequence_parallel` is set to `True`, but tensor model parallel size is {group.size()}. Disabling "
            "sequence parallel.",
            stacklevel=3,
        )
        return False
    return config.sequence_parallel
