"""batch_norm, instance_norm and group_norm. Short floats are calculated with as float32, and rounded once."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from torchemu import dtypes
from torchemu.frontends.numpy._autograd.derivative import LATER, Joint
from torchemu.frontends.numpy._grad_mode import no_grad
from torchemu.frontends.numpy._tensor import reductions
from torchemu.frontends.numpy._tensor.autocasting import castable
from torchemu.frontends.numpy._tensor.conversion import converted
from torchemu.frontends.numpy._tensor.core import Tensor
from torchemu.frontends.numpy._tensor.dispatch import (
    Inputs,
    Op,
    Outputs,
    _op_in_place,
    _op_several,
    flop_per_input,
)
from torchemu.frontends.numpy._tensor.reductions import wide
from torchemu.frontends.numpy.nn._functional.arguments import check_tensor
from torchemu.frontends.numpy.nn._functional.normalization import layer_norm

Array = np.ndarray


def _along(values: Array, ndim: int) -> Array:
    """One value for each channel, in a shape that broadcasts with (N, C, …)."""
    return values.reshape(1, -1, *[1] * (ndim - 2))


def _others(x: Array) -> tuple[int, ...]:
    return (0, *range(2, x.ndim))


def _batch_norm(
    x: Array, weight: Array | None, bias: Array | None, mean: Array | None, var: Array | None, eps: float
) -> tuple[Array, ...]:
    """The result, the means, the reciprocals of the standard deviations, and the variances: of the batch, where none
    are given."""
    numbers = wide(x)
    if mean is None or var is None:
        n = math.prod([x.shape[a] for a in _others(x)])
        mean = np.sum(numbers, axis=_others(x)) / numbers.dtype.type(n)
        var = np.sum(np.square(numbers - _along(mean, x.ndim)), axis=_others(x)) / numbers.dtype.type(n)
    mean, var = wide(mean).astype(numbers.dtype), wide(var).astype(numbers.dtype)
    rstd = 1 / np.sqrt(var + numbers.dtype.type(eps))
    result = (numbers - _along(mean, x.ndim)) * _along(rstd, x.ndim)
    if weight is not None:
        result = result * _along(wide(weight), x.ndim)
    return result if bias is None else result + _along(wide(bias), x.ndim), mean, rstd, var


def _batch_norm_backward(
    grad: Array, x: Array, weight: Array | None, mean: Array, rstd: Array, of_batch: bool
) -> tuple[Array, Array, Array]:
    """The gradients of input, weight and bias, as those of layer_norm; means that were given are constants."""
    g, axes = wide(grad), _others(x)
    normal = (wide(x) - _along(mean, x.ndim)) * _along(rstd, x.ndim)
    of_weight, of_bias = np.sum(g * normal, axis=axes), np.sum(g, axis=axes)
    scale = rstd if weight is None else rstd * wide(weight)
    if of_batch:
        n = g.dtype.type(math.prod([x.shape[a] for a in axes]))
        g = g - _along(of_bias / n, x.ndim) - normal * _along(of_weight / n, x.ndim)
    return g * _along(scale, x.ndim), of_weight, of_bias


def _gradients(call: Any, grad: Tensor | None, *_: Any) -> Sequence[Any]:
    if grad is None:
        return [None] * 5
    _, mean, rstd, _ = call.results
    kinds = [(about or call.operands[0]).dtype for about in call.operands[:3]]
    found = _op_several(BATCH_NORM_BACKWARD, (grad, call[0], call[1], mean, rstd), call[3] is None, kinds=kinds)
    return [*[t if needed else None for t, needed in zip(found, call.needs, strict=False)], None, None]


def _flops(flops: int) -> Any:
    def count(outputs: Outputs, inputs: Inputs) -> int:
        return flops * flop_per_input(outputs, inputs)

    return count


def _run(running: Array, batch: Array, momentum: float, scale: float) -> None:
    running[...] = converted(wide(running) * (1 - momentum) + batch * (momentum * scale), running.dtype)


BATCH_NORM_BACKWARD = Op("native_batch_norm_backward", _batch_norm_backward, _flops(12))
BATCH_NORM = Op("native_batch_norm", _batch_norm, _flops(8), derivative=Joint(_gradients, 0, 1, 3, LATER))
RUN = Op("batch_norm_update_stats", _run)


def batch_norm(
    input: Tensor,  # noqa: A002 (PyTorch's name)
    running_mean: Tensor | None,
    running_var: Tensor | None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """(input - mean)/√(variance + eps)·weight + bias, channel by channel.

    Args:
        input: (N, C, …), of floats.
        running_mean, running_var: of C; in training they become (1-momentum) of themselves and momentum of the
            batch's, the variance with N-1; otherwise they are what is used.
        weight, bias: of C; None: nothing of the kind.
        training: whether to use the means and variances of the batch.
        momentum, eps: as above.

    Raises:
        ValueError: in training there is only one value for a channel. RuntimeError: sizes that do not fit.
    """
    check_tensor("batch_norm", "input", 1, input)
    count = math.prod(input._shape) // max(input._shape[1], 1)
    if training and count == 1:
        raise ValueError(f"Expected more than 1 value per channel when training, got input size {input.size()}")
    named = {"running_mean": running_mean, "running_var": running_var, "weight": weight, "bias": bias}
    for name, t in named.items():
        if t is not None and t.numel() != input._shape[1]:
            raise RuntimeError(f"{name} should contain {input._shape[1]} elements not {t.numel()}")
        if t is None and name.startswith("running") and not training:
            raise RuntimeError(f"Expected {name} to be defined when training=False")
    given = (None, None) if training else (running_mean, running_var)
    wider = input.dtype if input.dtype is dtypes.float64 else dtypes.float32
    kinds = (input.dtype, wider, wider, wider)
    result, mean, _, var = _op_several(BATCH_NORM, (input, weight, bias, *given), eps, kinds=kinds)
    if training:
        for running, batch, scale in ((running_mean, mean, 1.0), (running_var, var, count / (count - 1))):
            if running is not None:
                with no_grad():
                    _op_in_place(RUN, running, (batch,), momentum, scale)
    return result


def instance_norm(
    input: Tensor,  # noqa: A002 (PyTorch's name)
    running_mean: Tensor | None = None,
    running_var: Tensor | None = None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    use_input_stats: bool = True,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """batch_norm of each element of the batch for itself.

    Args:
        input: (N, C, …), of floats.
        running_mean, running_var: of C; None: not kept. The means of the means and variances of all elements go into
            them.
        weight, bias: of C; None: nothing of the kind.
        use_input_stats: else the running ones are used.
        momentum: how much of the running means is to be this batch's.
        eps: keeps the divisor from zero.

    Raises:
        ValueError: a channel has only one element. RuntimeError: neither the input's nor running means.
    """
    if not use_input_stats:
        if running_mean is None or running_var is None:
            raise RuntimeError("Expected running_mean and running_var to be defined when use_input_stats is false")
        return batch_norm(input, running_mean, running_var, weight, bias, False, momentum, eps)
    if math.prod(input._shape[2:]) == 1:
        raise ValueError(f"Expected more than 1 spatial element when training, got input size {input.size()}")
    flat = input.flatten(2)
    with no_grad():
        for running, found in ((running_mean, reductions.mean), (running_var, reductions.var)):
            if running is not None:
                running.lerp_(found(flat, -1).mean(0).to(running.dtype), momentum)
    return _affine(layer_norm(flat, (math.prod(input._shape[2:]),), eps=eps), input, weight, bias)


@castable
def group_norm(
    input: Tensor,  # noqa: A002 (PyTorch's name)
    num_groups: int,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Tensor:
    """(input - mean)/√(variance + eps)·weight + bias, with the means over groups of channels.

    Args:
        input: (N, C, …), of floats.
        num_groups: how many; C is a multiple of it.
        weight, bias: of C; None: nothing of the kind.
        eps: keeps the divisor from zero.

    Raises:
        RuntimeError: fewer than two dimensions, or the channels cannot be divided.
    """
    if input.dim() < 2:
        raise RuntimeError(f"Expected at least 2 dimensions for input tensor but received {input.dim()}")
    channels = input._shape[1]
    if num_groups <= 0 or channels % num_groups:
        raise RuntimeError(
            "Expected number of channels in input to be divisible by num_groups, but got input of shape "
            f"{list(input._shape)} and num_groups={num_groups}"
        )
    size = math.prod(input._shape[2:]) * (channels // num_groups)
    return _affine(layer_norm(input.reshape(-1, num_groups, size), (size,), eps=eps), input, weight, bias)


def _affine(normal: Tensor, like: Tensor, weight: Tensor | None, bias: Tensor | None) -> Tensor:
    result = normal.reshape(like._shape)
    shape = (-1, *[1] * (like.dim() - 2))
    if weight is not None:
        result = result * weight.view(shape)
    return result if bias is None else result + bias.view(shape)
