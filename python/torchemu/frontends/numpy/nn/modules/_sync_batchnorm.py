"""What SyncBatchNorm calculates: the means over the batches of all ranks, and their gradients.

Forward all ranks gather each other's means and variances; backward they add up the sums that these have gradients of.
"""

from __future__ import annotations

from typing import Any

from torchemu.frontends.numpy._grad_mode import no_grad
from torchemu.frontends.numpy._tensor.core import Tensor
from torchemu.frontends.numpy._tensor.creation import full
from torchemu.frontends.numpy._tensor.joining import cat
from torchemu.frontends.numpy._tensor.reductions import var_mean
from torchemu.frontends.numpy.autograd import Function

Running = tuple[Tensor | None, Tensor | None]


def _axes(x: Tensor) -> list[int]:
    return [0, *range(2, x.dim())]


def _along(values: Tensor, x: Tensor) -> Tensor:
    return values.view(1, -1, *[1] * (x.dim() - 2))


def _of_this_rank(x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The means and variances of the channels, and how many elements each has."""
    var, mean = var_mean(x, _axes(x), correction=0)
    return mean, var, full((1,), x.numel() // x._shape[1], dtype="float32", device=x.device)


def _of_all_ranks(mean: Tensor, var: Tensor, count: Tensor, group: Any) -> tuple[Tensor, Tensor, Tensor]:
    """The same of all ranks together: variances are around means that differ."""
    from torchemu.frontends.numpy.distributed import all_gather_into_tensor

    own = cat([mean, var, count])
    rows = own.new_empty((group.size(), own.numel()))
    all_gather_into_tensor(rows, own, group=group)
    means, variances, counts = rows.split([mean.numel(), var.numel(), 1], dim=1)
    total = counts.sum(0)
    mean = (means * counts).sum(0) / total
    return mean, ((variances + (means - mean).square()) * counts).sum(0) / total, total


class _Normalize(Function):
    """Operands are input, weight, bias; then eps and the group. Results are the output, the means, the variances and
    the number of elements of a channel."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Any, bias: Any, eps: float, group: Any) -> Any:
        numbers = x.float()
        mean, var, total = _of_all_ranks(*_of_this_rank(numbers), group)
        rstd = (var + eps).rsqrt()
        normal = (numbers - _along(mean, x)) * _along(rstd, x)
        result = normal if weight is None else normal * _along(weight, x)
        ctx.save_for_backward(normal, rstd, weight, total)
        ctx.group, ctx.dtype = group, x.dtype
        ctx.mark_non_differentiable(mean, var, total)
        return (result if bias is None else result + _along(bias, x)).to(x.dtype), mean, var, total

    @staticmethod
    def backward(ctx: Any, grad: Tensor, *_: Any) -> Any:
        from torchemu.frontends.numpy.distributed import all_reduce

        normal, rstd, weight, total = ctx.saved_tensors
        g = grad.float()
        of_bias, of_weight = g.sum(_axes(g)), (g * normal).sum(_axes(g))
        sums = cat([of_bias, of_weight])
        all_reduce(sums, group=ctx.group)
        means = sums / total
        scale = rstd if weight is None else rstd * weight
        channels = g._shape[1]
        of_input = (g - _along(means[:channels], g) - normal * _along(means[channels:], g)) * _along(scale, g)
        return of_input.to(ctx.dtype), of_weight, of_bias, None, None


def synchronized(
    x: Tensor, weight: Any, bias: Any, running: Running, momentum: float, eps: float, group: Any
) -> Tensor | None:
    """The normalized input; the running means and variances become part of the batches'. None: there are no others.

    Raises:
        ValueError: the input is the host's, or a channel has only one value.
    """
    from torchemu.frontends.numpy import distributed

    if not (distributed.is_available() and distributed.is_initialized()):
        return None
    ranks = group if group is not None else distributed.group.WORLD
    if distributed.get_world_size(ranks) == 1:
        return None
    if x.device.is_host:
        raise ValueError("SyncBatchNorm expected input tensor to be on GPU or XPU or HPU or cuda")
    if x.numel() == x._shape[1]:
        raise ValueError(f"Expected more than 1 value per channel when training, got input size {x.size()}")
    result, mean, var, total = _Normalize.apply(x, weight, bias, eps, ranks)
    with no_grad():
        for kept, batch, scale in zip(running, (mean, var), (1, total / (total - 1)), strict=True):
            if kept is not None:
                kept.mul_(1 - momentum).add_((batch * scale * momentum).to(kept.dtype))
    return result
