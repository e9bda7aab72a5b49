"""Parts of tensors and of vocabularies, and how weights begin: what Megatron has in modules called utils."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import torchemu.frontends.numpy as torch
from torchemu.frontends.numpy.distributed import ProcessGroup
from torchemu.tp import _groups

__all__ = [
    "VocabUtility",
    "divide",
    "gather_split_1d_tensor",
    "split_tensor_along_last_dim",
    "split_tensor_into_1d_equal_chunks",
]

Init = Callable[[torch.Tensor], Any]


def divide(numerator: int, denominator: int) -> int:
    """Returns the quotient. A remainder is an AssertionError."""
    assert numerator % denominator == 0, f"{numerator} is not divisible by {denominator}"
    return numerator // denominator


def split_tensor_along_last_dim(
    tensor: torch.Tensor, num_partitions: int, contiguous_split_chunks: bool = False
) -> tuple[torch.Tensor, ...]:
    """Cuts a tensor into equal parts.

    Args:
        tensor: (…, n).
        num_partitions: how many.
        contiguous_split_chunks: copy them, so that each is contiguous.

    Raises:
        AssertionError: the last dimension is not divisible.
    """
    size = divide(tensor.size(-1), num_partitions)
    parts = tensor.split(size, dim=-1) if size else (tensor,) * num_partitions
    return tuple(part.contiguous() for part in parts) if contiguous_split_chunks else tuple(parts)


def split_tensor_into_1d_equal_chunks(
    tensor: torch.Tensor, new_buffer: bool = False, tp_group: ProcessGroup | None = None
) -> torch.Tensor:
    """Returns the rank's part of a tensor's elements, in one dimension.

    Args:
        tensor: of any shape; elements that are left when they are divided are nobody's.
        new_buffer: copy the part.
        tp_group: the ranks; None: the tensor model parallel group.
    """
    group = get_tensor_model_parallel_group_if_none(tp_group)
    size = tensor.numel() // group.size()
    part = tensor.view(-1)[group.rank() * size : (group.rank() + 1) * size]
    return part.clone() if new_buffer else part


def gather_split_1d_tensor(tensor: torch.Tensor, tp_group: ProcessGroup | None = None) -> torch.Tensor:
    """Joins what split_tensor_into_1d_equal_chunks has divided, in one dimension."""
    group = get_tensor_model_parallel_group_if_none(tp_group)
    whole = tensor.new_empty(group.size() * tensor.numel())
    torch.distributed.all_gather_into_tensor(whole, tensor, group=group)
    return whole


def get_tensor_model_parallel_group_if_none(tp_group: ProcessGroup | None, is_expert: bool = False) -> ProcessGroup:
    """Returns the group, or the rank's tensor model parallel one, or that of experts; an AssertionError without one."""
    if tp_group is not None:
        return tp_group
    kind = _groups.EXPERT_TENSOR if is_expert else _groups.TENSOR
    found: ProcessGroup = kind.group()
    return found


def init_method_normal(sigma: float) -> Init:
    """Fills a tensor from a normal distribution of mean 0."""
    return functools.partial(torch.nn.init.normal_, mean=0.0, std=sigma)


def scaled_init_method_normal(sigma: float, num_layers: int, multiplier: float = 2.0) -> Init:
    """Fills a tensor from a normal distribution of mean 0 and deviation σ/√(multiplier·layers)."""
    return init_method_normal(sigma / math.sqrt(multiplier * num_layers))


class VocabUtility:
    """Says which part of a vocabulary a rank has: from its first token up to but without its last."""

    @staticmethod
    def vocab_range_from_per_partition_vocab_size(
        per_partition_vocab_size: int, rank: int, world_size: int
    ) -> Sequence[int]:
        """Returns the range, from the size of each part."""
        return rank * per_partition_vocab_size, (rank + 1) * per_partition_vocab_size

    @staticmethod
    def vocab_range_from_global_vocab_size(global_vocab_size: int, rank: int, world_size: int) -> Sequence[int]:
        """Returns the range, from the size of the whole; an AssertionError if that cannot be divided."""
        part = divide(global_vocab_size, world_size)
        return VocabUtility.vocab_range_from_per_partition_vocab_size(part, rank, world_size)
