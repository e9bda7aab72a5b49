"""The loss of logits over a vocabulary of which each rank has a part."""

from __future__ import annotations

from torchemu.frontends.numpy._tensor.core import Tensor
from torchemu.frontends.numpy.distributed import ProcessGroup
from torchemu.tp.mappings import planned


def vocab_parallel_cross_entropy(
    vocab_parallel_logits: Tensor,
    target: Tensor,
    label_smoothing: float = 0.0,
    tp_group: ProcessGroup | None = None,
) -> Tensor:
    """Returns the loss log Σ exp(logits) - logits[target] of each token.

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
    how = {"part": vocab_parallel_logits.shape[-1], "dtype": vocab_parallel_logits.dtype.name}
    operands, smoothing = (vocab_parallel_logits, target), float(label_smoothing)
    return planned("vocab_parallel_cross_entropy", tp_group, *operands, label_smoothing=smoothing, **how)
