"""Sums of gradients over ranks when a backward pass has ended."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torchemu.frontends.numpy as torch
from torchemu.frontends.numpy import distributed as dist
from torchemu.frontends.numpy.distributed import ProcessGroup
from torchemu.tp.utils import get_tensor_model_parallel_group_if_none


def allreduce_sequence_parallel_grads(parameters: Iterable[torch.Tensor], tp_group: ProcessGroup | None = None) -> None:
    """Adds up, over the ranks, gradients of parameters of which all ranks have a copy and each has computed the share
    of its part of the sequence: those marked by an attribute ``sequence_parallel``, such as biases of row-parallel
    layers, and layer norms that the program has marked. It is one collective for each dtype.

    Args:
        parameters: of which the marked ones are meant. Their gradient is main_grad, or else grad.
        tp_group: the ranks; None: the tensor model parallel group.
    """
    group = get_tensor_model_parallel_group_if_none(tp_group)
    if group.size() == 1:
        return
    by_dtype: dict[torch.dtype, list[torch.Tensor]] = {}
    for parameter in parameters:
        grad = _gradient(parameter) if getattr(parameter, "sequence_parallel", False) else None
        if grad is not None:
            by_dtype.setdefault(grad.dtype, []).append(grad)
    with torch.no_grad():
        for grads in by_dtype.values():
            flat = torch.cat([grad.reshape(-1) for grad in grads])
            dist.all_reduce(flat, group=group)
            for grad, part in zip(grads, flat.split([grad.numel() for grad in grads]), strict=True):
                grad.copy_(part.view_as(grad))


def _gradient(parameter: Any) -> torch.Tensor | None:
    main = getattr(parameter, "main_grad", None)
    return parameter.grad if main is None else main


def finalize_model_grads(model: list[torch.nn.Module], num_tokens: torch.Tensor | None = None) -> None:
    """Does with gradients what the ranks of a tensor parallel group have to do together after the backward pass: see
    allreduce_sequence_parallel_grads.

    Args:
        model: the parts of the model that the rank has.
        num_tokens: must be None.

    Raises:
        NotImplementedError: num_tokens, by which the gradients of data parallel ranks would be divided.
    """
    if num_tokens is not None:
        raise NotImplementedError("finalize_model_grads(num_tokens=…) is not supported: divide the loss instead")
    for part in model:
        allreduce_sequence_parallel_grads(part.parameters())
