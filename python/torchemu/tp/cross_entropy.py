"""The loss of logits over a vocabulary of which each rank has a part."""

from __future__ import annotations

from typing import Any

import torchemu.frontends.numpy as torch
from torchemu.frontends.numpy import distributed as dist
from torchemu.frontends.numpy._tensor.core import Tensor
from torchemu.frontends.numpy.autograd import Function
from torchemu.frontends.numpy.distributed import ProcessGroup
from torchemu.tp._sizes import VocabUtility, group_or_default


class _VocabParallelCrossEntropy(Function):
    @staticmethod
    def forward(ctx: Any, logits: Tensor, target: Tensor, label_smoothing: float, group: ProcessGroup) -> Tensor:
        wide = logits if logits.dtype is torch.float64 else logits.float()
        shifted = wide - _reduced(wide.amax(dim=-1), group, dist.ReduceOp.MAX).unsqueeze(-1)
        size = logits.shape[-1]
        first, end = VocabUtility.vocab_range_from_per_partition_vocab_size(size, group.rank(), group.size())
        others = (target < first) | (target >= end)
        rows, places = _places(target, others, first)
        predicted = shifted.view(-1, size)[rows, places].view_as(target).masked_fill(others, 0)
        predicted = _reduced(predicted, group)
        exponentials = shifted.exp()
        total = _reduced(exponentials.sum(dim=-1), group)
        log_total = total.log()
        softmax = exponentials / total.unsqueeze(-1)
        ctx.smoothing = label_smoothing * size / (size - 1) if label_smoothing > 0 else 0.0
        ctx.save_for_backward(softmax, others, places)
        loss = log_total - predicted
        if ctx.smoothing:
            mean = shifted.mean(dim=-1) - log_total
            loss = (1 - ctx.smoothing) * loss - ctx.smoothing * mean
        return loss

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> Any:
        softmax, others, places = ctx.saved_tensors
        size = softmax.shape[-1]
        slope = softmax.clone()
        here = (~others.view(-1)).to(softmax.dtype)
        slope.view(-1, size)[torch.arange(places.numel(), device=places.device), places] -= (1 - ctx.smoothing) * here
        if ctx.smoothing:
            slope -= ctx.smoothing / size
        return slope.mul_(grad_output.unsqueeze(-1)), None, None, None


def _reduced(t: Tensor, group: ProcessGroup, op: Any = dist.ReduceOp.SUM) -> Tensor:
    """A tensor of our own, reduced over the ranks in place."""
    if group.size() > 1:
        dist.all_reduce(t, op=op, group=group)
    return t


def _places(target: Tensor, others: Tensor, first: int) -> tuple[Tensor, Tensor]:
    """For each token its row of logits, and its target's place in the rank's part; 0 where that is another rank's."""
    places = (target - first).masked_fill(others, 0).view(-1)
    return torch.arange(places.numel(), device=places.device), places


def vocab_parallel_cross_entropy(
    vocab_parallel_logits: Tensor,
    target: Tensor,
    label_smoothing: float = 0.0,
    tp_group: ProcessGroup | None = None,
) -> Tensor:
    """The loss log Σ exp(logits) - logits[target] of each token.

    With label smoothing a > 0 it is Megatron's: a rank takes its part of the vocabulary, of m tokens, for the whole.
    With s = a·m/(m-1) it is 1-s times the loss without smoothing, less s times the mean of the log probabilities of the
    part; so it differs from rank to rank, and with the number of ranks.

    Args:
        vocab_parallel_logits: the rank's part of the logits, […, vocabulary / n].
        target: tokens, […].
        label_smoothing: 0 ≤ a < 1.
        tp_group: the ranks; None: the tensor model parallel group.

    Returns:
        float32, […]; float64 for logits of float64.

    Raises:
        AssertionError: label_smoothing is out of range.
        RuntimeError: the shapes do not fit.
    """
    assert 0.0 <= label_smoothing < 1.0, f"label_smoothing must be at least 0 and less than 1, not {label_smoothing}"
    if vocab_parallel_logits.shape[:-1] != target.shape:
        raise RuntimeError(
            f"logits of shape {list(vocab_parallel_logits.shape)} need targets of shape "
            f"{list(vocab_parallel_logits.shape[:-1])}, not {list(target.shape)}"
        )
    group = group_or_default(tp_group)
    return _VocabParallelCrossEntropy.apply(vocab_parallel_logits, target, label_smoothing, group)
