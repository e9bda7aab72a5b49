"""The linear function of tensor parallel layers, whose backward communicates while it computes."""

from __future__ import annotations

import warnings
from typing import Any

import torchemu.frontends.numpy as torch
from torchemu.frontends.numpy import distributed as dist
from torchemu.frontends.numpy._tensor.core import Tensor
from torchemu.frontends.numpy.autograd import Function
from torchemu.frontends.numpy.distributed import ProcessGroup
from torchemu.frontends.numpy.nn.functional import linear
from torchemu.tp import primitives
from torchemu.tp._sizes import group_or_default
from torchemu.tp.mappings import gather_from_sequence_parallel_region


def _rows(t: Tensor) -> Tensor:
    """All dimensions but the last in one."""
    return t.reshape(-1, t.size(-1))


def _biased(input_: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """The product, rounded, and then the bias."""
    output = linear(input_, weight)
    return output if bias is None else output + bias


class LinearWithFrozenWeight(Function):
    """A product with a weight that has no gradient. The input's is added up over the ranks if that is wanted."""

    @staticmethod
    def forward(
        ctx: Any, input_: Tensor, weight: Tensor, bias: Tensor | None, allreduce_dgrad: bool, tp_group: ProcessGroup
    ) -> Tensor:
        ctx.save_for_backward(weight)
        ctx.allreduce_dgrad, ctx.tp_group = allreduce_dgrad, tp_group
        return _biased(input_, weight, bias)

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> Any:
        (weight,) = ctx.saved_tensors
        grad_input = linear(grad_output, weight.t())
        if ctx.allreduce_dgrad:
            dist.all_reduce(grad_input, group=ctx.tp_group)
        grad_bias = _rows(grad_output).sum(dim=0) if ctx.needs_input_grad[2] else None
        return grad_input, None, grad_bias, None, None


class LinearWithGradAccumulationAndAsyncCommunication(Function):
    """A product with a weight. While its backward computes the weight's gradient, the input's is added up over the
    ranks; with sequence parallelism inputs are joined once more while the gradient of the input is computed, and that
    is added up and divided while the weight's is."""

    @staticmethod
    def forward(
        ctx: Any,
        input_: Tensor,
        weight: Tensor,
        bias: Tensor | None,
        gradient_accumulation_fusion: bool,
        allreduce_dgrad: bool,
        sequence_parallel: bool,
        grad_output_buffer: Any,
        wgrad_deferral_limit: int,
        tp_group: ProcessGroup,
    ) -> Tensor:
        if gradient_accumulation_fusion:
            raise RuntimeError("gradient_accumulation_fusion needs the CUDA extension fused_weight_gradient_mlp_cuda")
        ctx.save_for_backward(input_, weight)
        ctx.allreduce_dgrad, ctx.sequence_parallel = allreduce_dgrad, sequence_parallel
        ctx.grad_output_buffer, ctx.wgrad_deferral_limit = grad_output_buffer, wgrad_deferral_limit
        ctx.tp_group = tp_group
        whole = primitives.gather_along_first_dim(input_, tp_group) if sequence_parallel else input_
        return _biased(whole, weight, bias)

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> Any:
        input_, weight = ctx.saved_tensors
        wanted = ctx.needs_input_grad[:3]
        whole, joining = input_, None
        if ctx.sequence_parallel and wanted[1]:
            whole, joining = _joining(input_, ctx.tp_group)
        grad_input = linear(grad_output, weight.t())
        if joining is not None:
            joining.wait()
        reducing = None
        if ctx.allreduce_dgrad:
            reducing = dist.all_reduce(grad_input, group=ctx.tp_group, async_op=True)
        elif ctx.sequence_parallel:
            grad_input, reducing = _dividing(grad_input, input_, ctx.tp_group)
        grad_weight = _rows(grad_output).t().matmul(_rows(whole)) if wanted[1] else None
        grad_bias = _rows(grad_output).sum(dim=0) if wanted[2] else None
        if reducing is not None:
            reducing.wait()
        return grad_input, grad_weight, grad_bias, None, None, None, None, None, None


def _joining(input_: Tensor, group: ProcessGroup) -> tuple[Tensor, Any]:
    """The ranks' tensors joined along the first dimension, and the work that does it."""
    whole = input_.new_empty((input_.size(0) * group.size(), *input_.shape[1:]))
    return whole, dist.all_gather_into_tensor(whole, input_.contiguous(), group=group, async_op=True)


def _dividing(grad: Tensor, like: Tensor, group: ProcessGroup) -> tuple[Tensor, Any]:
    """The rank's part of the sum of the ranks' gradients, and the work that computes it."""
    part = torch.empty_like(like, memory_format=torch.contiguous_format)
    return part, dist.reduce_scatter_tensor(part, grad, group=group, async_op=True)


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
    group = group_or_default(tp_group)
    if sequence_parallel:
        input = gather_from_sequence_parallel_region(input, tensor_parallel_output_grad=True, group=group)  # noqa: A001
    _warn_of(async_grad_allreduce)
    return LinearWithFrozenWeight.apply(input, weight, bias, allreduce_dgrad, group)


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
    """input @ weightᵀ + bias, whose backward communicates while it computes.

    Args:
        input: […, in]; with sequence_parallel the rank's part of it along the first dimension.
        weight: [out, in].
        bias: [out].
        gradient_accumulation_fusion: must be False: there is no such extension.
        allreduce_dgrad: the gradient of the input is added up over the ranks while the weight's is computed.
        sequence_parallel: the input is joined, in the backward pass again; its gradient is added up and divided.
        grad_output_buffer, wgrad_deferral_limit: mean nothing here.
        async_grad_allreduce: means nothing any more; a warning says so.
        tp_group: the ranks; None: the tensor model parallel group.

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
