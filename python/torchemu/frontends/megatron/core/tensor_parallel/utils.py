"""megatron.core.tensor_parallel.utils: parts of tensors and vocabularies."""

from torchemu.tp._sizes import (
    VocabUtility,
    gather_split_1d_tensor,
    split_tensor_along_last_dim,
    split_tensor_into_1d_equal_chunks,
)

__all__ = ["VocabUtility", "gather_split_1d_tensor", "split_tensor_along_last_dim", "split_tensor_into_1d_equal_chunks"]
