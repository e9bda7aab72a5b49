"""torch.distributed.nn: collectives through which gradients go."""

from __future__ import annotations

from torchemu.frontends.numpy.distributed.nn import functional
from torchemu.frontends.numpy.distributed.nn.functional import (
    _all_gather_base,
    all_gather,
    all_reduce,
    all_to_all,
    all_to_all_single,
    broadcast,
    gather,
    reduce,
    reduce_scatter,
    scatter,
)

__all__ = [
    "_all_gather_base",
    "all_gather",
    "all_reduce",
    "all_to_all",
    "all_to_all_single",
    "broadcast",
    "functional",
    "gather",
    "reduce",
    "reduce_scatter",
    "scatter",
]
