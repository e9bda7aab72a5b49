"""megatron.core.utils: groups, sizes and initial values."""

from torchemu.tp._memory_buffer import GlobalMemoryBuffer
from torchemu.tp._sizes import divide, ensure_divisibility, get_pg_rank, get_pg_size
from torchemu.tp._sizes import group_or_default as get_tensor_model_parallel_group_if_none
from torchemu.tp.config import init_method_normal, scaled_init_method_normal

__all__ = [
    "GlobalMemoryBuffer",
    "divide",
    "ensure_divisibility",
    "get_pg_rank",
    "get_pg_size",
    "get_tensor_model_parallel_group_if_none",
    "init_method_normal",
    "scaled_init_method_normal",
]
