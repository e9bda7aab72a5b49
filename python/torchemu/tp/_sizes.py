"""Parts of tensors and vocabularies."""

from __future__ import annotations

from collections.abc import Sequence

import torchemu.frontends.numpy as torch
from torchemu.frontends.numpy.distributed import ProcessGroup
from torchemu.tp import parallel_state


def ensure_divisibility(numerator: int, denominator: int) -> None:
    """Raises:
    AssertionError: the first is not a multiple of the second.
    """
    assert numerator % denominator == 0, f"{numerator} is not divisible by {denominator}"


def divide(numerator: int, denominator: int) -> int:
    """The quotient.

    Raises:
        AssertionError: there is a remainder.
    """
    ensure_divisibility(numerator, denominator)
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
    parts = tensor.split(max(divide(tensor.size(-1), num_partitions), 1), dim=-1)
    if not tensor.size(-1):
        parts = (tensor,) * num_partitions
    return tuple(part.contiguous() for part in parts) if contiguous_split_chunks else tuple(parts)


def split_tensor_into_1d_equal_chunks(
    tensor: torch.Tensor, new_buffer: bool = False, tp_group: ProcessGroup | None = None
) -> torch.Tensor:
    """The rank's part of a tensor's elements, in one dimension.

    Args:
        tensor: of any shape; elements that are left when they are divided are nobody's.
        new_buffer: copy the part.
        tp_group: the ranks; None: the tensor model parallel group.
    """
    group = group_or_default(tp_group)
    size = tensor.numel() // group.size()
    part = tensor.view(-1)[group.rank() * size : (group.rank() + 1) * size]
    return part.clone() if new_buffer else part


def gather_split_1d_tensor(tensor: torch.Tensor, tp_group: ProcessGroup | None = None) -> torch.Tensor:
    """Joins what split_tensor_into_1d_equal_chunks has divided, in one dimension."""
    group = group_or_default(tp_group)
    whole = tensor.new_empty(group.size() * tensor.numel())
    torch.distributed.all_gather_into_tensor(whole, tensor, group=group)
    return whole


def group_or_default(group: ProcessGroup | None, is_expert: bool = False) -> ProcessGroup:
    """The group, or the tensor model parallel one, or that of experts.

    Raises:
        AssertionError: there is none.
    """
    if group is not None:
        return group
    if is_expert:
        return parallel_state.get_expert_tensor_parallel_group()
    return parallel_state.get_tensor_model_parallel_group()


def get_pg_size(group: ProcessGroup | None = None) -> int:
    """The number of ranks in a group; 1 without a group, or without a default one."""
    return 1 if group is None or not torch.distributed.is_initialized() else group.size()


def get_pg_rank(group: ProcessGroup | None = None) -> int:
    """The rank's number in a group; 0 without a group, or without a default one."""
    return 0 if group is None or not torch.distributed.is_initialized() else group.rank()


class VocabUtility:
    """Which part of a vocabulary a rank has: from its first token up to but without its last."""

    @staticmethod
    def vocab_range_from_per_partition_vocab_size(
        per_partition_vocab_size: int, rank: int, world_size: int
    ) -> Sequence[int]:
        """From the size of each part."""
        return rank * per_partition_vocab_size, (rank + 1) * per_partition_vocab_size

    @staticmethod
    def vocab_range_from_global_vocab_size(global_vocab_size: int, rank: int, world_size: int) -> Sequence[int]:
        """From the size of the whole.

        Raises:
            AssertionError: it is not divisible.
        """
        part = divide(global_vocab_size, world_size)
        return VocabUtility.vocab_range_from_per_partition_vocab_size(part, rank, world_size)
