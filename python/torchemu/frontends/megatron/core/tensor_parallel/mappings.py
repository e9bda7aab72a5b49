"""megatron.core.tensor_parallel.mappings."""

from torchemu.tp.mappings import *  # noqa: F403
from torchemu.tp.primitives import gather_along_first_dim as _gather_along_first_dim
from torchemu.tp.primitives import gather_along_last_dim as _gather_along_last_dim
from torchemu.tp.primitives import reduce as _reduce
from torchemu.tp.primitives import (
    reduce_scatter_along_first_dim as _reduce_scatter_along_first_dim,
)
from torchemu.tp.primitives import (
    reduce_scatter_along_last_dim as _reduce_scatter_along_last_dim,
)
from torchemu.tp.primitives import split_along_first_dim as _split_along_first_dim
from torchemu.tp.primitives import split_along_last_dim as _split_along_last_dim

__all__ = [
    "_gather_along_first_dim",
    "_gather_along_last_dim",
    "_reduce",
    "_reduce_scatter_along_first_dim",
    "_reduce_scatter_along_last_dim",
    "_split_along_first_dim",
    "_split_along_last_dim",
]
