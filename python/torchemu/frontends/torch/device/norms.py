"""Normalization as CUDA does it: of layers and batches of 16-bit floats with statistics of float32, and results that
are rounded once; by the root mean square as one operation, of which DTensor knows where results are."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from torchemu.frontends.torch.device import places
from torchemu.frontends.torch.device.patches import Replacements, overridable

aten = torch.ops.aten

_SHORT = (torch.float16, torch.bfloat16)
_forward = aten.native_layer_norm.default
_backward = aten.native_layer_norm_backward.default
_batch_forward = aten.native_batch_norm.default
_batch_backward = aten.native_batch_norm_backward.default

_NAMES = {torch.float16: "Half", torch.bfloat16: "BFloat16", torch.float32: "Float", torch.float64: "Double"}
"""The names of dtypes in PyTorch's errors."""


def _wide(x: Tensor | None) -> Tensor | None:
    return None if x is None else x.float()


def _normalized(
    input: Tensor,  # noqa: A002 (PyTorch's name)
    normalized_shape: Sequence[int],
    weight: Tensor | None,
    bias: Tensor | None,
    eps: float,
) -> Any:
    if input.dtype not in _SHORT:
        return _forward._op(input, normalized_shape, weight, bias, eps)
    out, mean, rstd = _forward(input.float(), normalized_shape, _wide(weight), _wide(bias), eps)
    return out.to(input.dtype), mean, rstd


def _gradients(
    grad_out: Tensor,
    input: Tensor,  # noqa: A002
    normalized_shape: Sequence[int],
    mean: Tensor,
    rstd: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    output_mask: Sequence[bool],
) -> Any:
    if input.dtype not in _SHORT:
        made = _backward._op(grad_out, input, normalized_shape, mean, rstd, weight, bias, output_mask)
        return (_contiguous(made[0]), *made[1:])
    wide = (_wide(x) for x in (mean, rstd, weight, bias))
    made = _backward(grad_out.float(), input.float(), normalized_shape, *wide, output_mask)
    kinds = (input, input if weight is None else weight, input if bias is None else bias)
    given, *others = (None if g is None else g.to(of.dtype) for g, of in zip(made, kinds, strict=True))
    return (_contiguous(given), *others)


def _contiguous(gradient: Tensor | None) -> Tensor | None:
    """Orders a gradient by inputs as kernels do; without elements PyTorch keeps the inputs' order."""
    return None if gradient is None else gradient.contiguous()


def _batch_normalized(
    input: Tensor,  # noqa: A002
    weight: Tensor | None,
    bias: Tensor | None,
    mean: Tensor | None,
    var: Tensor | None,
    *setting: Any,
) -> Any:
    if input.dtype not in _SHORT:
        return _batch_forward._op(input, weight, bias, mean, var, *setting)
    running = _wide(mean), _wide(var)
    out, *saved = _batch_forward(input.float(), _wide(weight), _wide(bias), *running, *setting)
    for kept, now in zip((mean, var), running, strict=True):
        if kept is not None and kept is not now:
            kept.copy_(now)
    return out.to(input.dtype), *saved


def _batch_gradients(
    grad_out: Tensor,
    input: Tensor,  # noqa: A002
    weight: Tensor | None,
    mean: Tensor | None,
    *rest: Any,
) -> Any:
    if input.dtype not in _SHORT:
        return _batch_backward._op(grad_out, input, weight, mean, *rest)
    if input.dim() > 2 and weight is not None and mean is not None and weight.dtype != mean.dtype:
        raise RuntimeError(  # of images, CUDA has kernels of one dtype for both
            f"Expected running_mean to have type {_NAMES[weight.dtype]} but got {_NAMES[mean.dtype]}"
        )
    *statistics, training, eps, output_mask = rest
    wide = (_wide(x) for x in (weight, mean, *statistics))
    made = _batch_backward(grad_out.float(), input.float(), *wide, training, eps, output_mask)
    of = input if weight is None else weight
    return tuple(None if g is None else g.to(o.dtype) for g, o in zip(made, (input, of, of), strict=True))


def _for_sums(x: Tensor) -> Tensor:
    """Returns a tensor in the dtype in which CUDA adds up."""
    return x.float() if x.dtype in _SHORT else x


def _by_root_mean_square(
    input: Tensor,  # noqa: A002
    normalized_shape: Sequence[int],
    weight: Tensor | None,
    eps: float | None,
) -> tuple[Tensor, Tensor]:
    wide = _for_sums(input)
    inner = tuple(range(input.dim() - len(normalized_shape), input.dim()))
    least = torch.finfo(wide.dtype).eps if eps is None else eps
    rstd = wide.square().mean(inner, keepdim=True).add_(least).rsqrt_()
    out = wide * rstd if weight is None else wide * rstd * weight
    return out.to(input.dtype), rstd


def _root_mean_square_gradients(
    grad_out: Tensor,
    input: Tensor,  # noqa: A002
    normalized_shape: Sequence[int],
    rstd: Tensor,
    weight: Tensor | None,
    output_mask: Sequence[bool],
) -> Any:
    first = input.dim() - len(normalized_shape)
    inner, outer = tuple(range(first, input.dim())), tuple(range(first))
    grad, normal = _for_sums(grad_out), _for_sums(input) * rstd
    of_input = of_weight = None
    if output_mask[0]:
        wanted = grad if weight is None else grad * _for_sums(weight)
        of_input = ((wanted - normal * (wanted * normal).mean(inner, keepdim=True)) * rstd).to(input.dtype)
    if output_mask[1] and weight is not None:
        product = grad * normal
        of_weight = (product.sum(outer) if outer else product).to(weight.dtype)
    return of_input, of_weight


class _RootMeanSquare(torch.autograd.Function):
    """RMSNorm by CUDA's operations. PyTorch takes the first one apart above autograd, where tensors seem the host's."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor | None, shape: Sequence[int], eps: float | None) -> Tensor:
        with torch._C._AutoDispatchBelowAutograd():
            out, rstd = aten._fused_rms_norm(x, shape, weight, eps)
        ctx.save_for_backward(x, weight, rstd)
        ctx.shape, ctx.eps = shape, eps
        return out

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        x, weight, rstd = ctx.saved_tensors
        wanted = list(ctx.needs_input_grad[:2])
        if torch.is_grad_enabled():  # of gradients there are to be gradients
            leaves = [t for t, wants in zip((x, weight), wanted, strict=True) if wants]
            made = iter(torch.autograd.grad(_apart(x, ctx.shape, weight, ctx.eps), leaves, grad, create_graph=True))
            return *(next(made) if wants else None for wants in wanted), None, None
        return *aten._fused_rms_norm_backward(grad, x, ctx.shape, rstd, weight, wanted), None, None


_apart = torch.rms_norm
"""PyTorch's own, which takes it apart."""


def _is_fused(x: Any, weight: Any) -> bool:
    """Reports whether CUDA has one kernel for it, and whether nobody looks at what it is made of."""
    if weight is not None and weight.dtype != x.dtype:
        return False
    return places.is_plain_on_device(x) or (
        places.is_distributed(x) and places.of(x) is not None and not places.is_transformed()
    )


def put(replaced: Replacements) -> None:
    """Puts it in place where programs call it."""

    @functools.wraps(_apart)
    def rms_norm(
        input: Any,  # noqa: A002
        normalized_shape: Sequence[int],
        weight: Any = None,
        eps: float | None = None,
    ) -> Any:
        if _is_fused(input, weight):
            return _RootMeanSquare.apply(input, weight, normalized_shape, eps)
        return _apart(input, normalized_shape, weight, eps)

    replaced.put(torch, "rms_norm", overridable(rms_norm, torch.rms_norm))


KERNELS: dict[Any, Callable[..., Any]] = {
    _forward: _normalized,
    _backward: _gradients,
    _batch_forward: _batch_normalized,
    _batch_backward: _batch_gradients,
    aten._fused_rms_norm.default: _by_root_mean_square,
    aten._fused_rms_norm_backward.default: _root_mean_square_gradients,
}
"""Functions that compute them, by operation."""
