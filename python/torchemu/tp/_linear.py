"""The linear function of tensor parallel layers, whose backward communicates while it computes."""

from __future__ import annotations

import warnings
from typing import Any

from torchemu.frontends.numpy._tensor.core import Tensor
from torchemu.frontends.numpy.distributed import ProcessGroup
from torchemu.tp._planned import Planned, dtype_name
from torchemu.tp._sizes import group_or_default
from torchemu.tp.plans import plans


def column_linear(
    input_: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    group: ProcessGroup,
    output_dtype: Any = None,
    **options: bool,
) -> Tensor:
    """Computes input_ @ weightᵀ + bias, where each rank has a part of the outputs.

    Args:
        input_, weight, bias: the operands; a weight without requires_grad gets no gradient.
        group: the ranks.
        output_dtype: of the output; None: as it is.
        options: gather_output, sequence_parallel, explicit_expert_comm, disable_grad_reduce, as the layer has them.
    """
    dtypes = {}
    if output_dtype is not None:
        dtypes = {"dtype": dtype_name(weight.dtype), "output_dtype": dtype_name(output_dtype)}
    added = [] if bias is None else [bias]
    wanted = {"weight_grad": weight.requires_grad, "bias_grad": any(b.requires_grad for b in added)}
    both = plans("ColumnParallelLinear", ranks=group.size(), bias=bool(added), **wanted, **options, **dtypes)
    return Planned.apply(both, group, input_, weight, *added)


class LinearWithFrozenWeight:
    """A product with a weight that has no gradient. The input's is added up over the ranks if that is wanted."""

    @staticmethod
    def apply(
        input_: Tensor, weight: Tensor, bias: Tensor | None, allreduce_dgrad: bool, tp_group: ProcessGroup
    ) -> Tensor:
        """Calls it; the arguments are those of linear_with_frozen_weight."""
        return column_linear(input_, weight.detach(), bias, tp_group, disable_grad_reduce=not allreduce_dgrad)


class LinearWithGradAccumulationAndAsyncCommunication:
    """A product with a weight. While its backward computes the weight's gradient, the input's is added up over the
    ranks; with sequence parallelism inputs are joined once more while the gradient of the input is computed, and that
    is added up and divided while the weight's is."""

    @staticmethod
    def apply(
        input_: Tensor,
        weight: Tensor,
        bias: Tensor | None,
        gradient_accumulation_fusion: bool,
        allreduce_dgrad: bool,
        sequence_parallel: bool,
        grad_output_buffer: Any,
        wgrad_deferral_limit: int | None,
        tp_group: ProcessGroup,
    ) -> Tensor:
        """Calls it; the arguments are those of linear_with_grad_accumulation_and_async_allreduce."""
        if gradient_accumulation_fusion:
            raise RuntimeError("gradient_accumulation_fusion needs the CUDA extension fused_weight_gradient_mlp_cuda")
        how = {"disable_grad_reduce": not allreduce_dgrad, "sequence_parallel": sequence_parallel}
        return column_linear(input_, weight, bias, tp_group, **how)


def _warn_of(async_grad_allreduce: bool | None) -> None:
    if async_grad_allreduce is not None:
        warnings.warn(
            "async_grad_allreduce is deprecated, not in use anymore and will be fully removed with 0.11.0. Please use "
            "allreduce_dgrad instead.",
            stacklevel=3,
        )


def linear_with_frozen_weight(
    input: Tensor,  # noqa: A002 (Megatron's name)
    weight: Tensor,
    bias: Tensor | None,
    gradient_accumulation_fusion: bool,
    allreduce_dgrad: bool,
    sequence_parallel: bool,
    tp_group: ProcessGroup | None = None,
    grad_output_buffer: Any = None,
    wgrad_deferral_limit: None = None,
    async_grad_allreduce: bool | None = None,
) -> Tensor:
    """input @ weightᵀ + bias, where the weight has no gradient.

    Args:
        input: […, in]; with sequence_parallel the rank's part of it along the first dimension.
        weight: [out, in].
        bias: [out].
        gradient_accumulation_fusion, grad_output_buffer, wgrad_deferral_limit: mean nothing here.
        allreduce_dgrad: the gradient of the input is added up over the ranks.
        sequence_parallel: the input is joined first.
        tp_group: the ranks; None: the tensor model parallel group.
        async_grad_allreduce: means nothing any more; a warning says so.
    """
    _warn_of(async_grad_allreduce)
    how = {"disable_grad_reduce": not allreduce_dgrad, "sequence_parallel": sequence_parallel}
    return column_linear(input, weight.detach(), bias, group_or_default(tp_group), **how)


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
    """input @ weightᵀ + bias, whose backward communicates while it computes; the input is joined there again.

    The arguments are those of linear_with_frozen_weight.

    Raises:
        RuntimeError: gradient_accumulation_fusion.
    """
    _warn_of(async_grad_allreduce)
    return LinearWithGradAccumulationAndAsyncCommunication.apply(
        input,
        weight,
        bias,
        gradient_accumulation_fusion,
        allreduce_dgrad,
        sequence_parallel,
        grad_output_buffer,
        wgrad_deferral_limit,
        group_or_default(tp_group),
    )
