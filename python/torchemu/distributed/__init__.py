"""torch.distributed, on the simulated fabric."""

from __future__ import annotations

import sys

from torchemu.distributed._collectives import all_gather_into_tensor, all_reduce, reduce_scatter_tensor
from torchemu.distributed._decorator import CallableModule
from torchemu.distributed._groups import (
    BACKENDS,
    ProcessGroup,
    destroy_process_group,
    get_backend,
    get_rank,
    get_world_size,
    init_process_group,
    is_available,
    is_initialized,
)
from torchemu.distributed._reduce_op import ReduceOp
from torchemu.distributed._work import Work
from torchemu.distributed.rendezvous import register_rendezvous_handler, rendezvous
from torchemu.distributed.store import FileStore, HashStore, PrefixStore, Store, TCPStore
from torchemu.errors import DistBackendError, DistError, DistNetworkError, DistStoreError, QueueEmptyError

__all__ = [
    "BACKENDS",
    "DistBackendError",
    "DistError",
    "DistNetworkError",
    "DistStoreError",
    "FileStore",
    "HashStore",
    "PrefixStore",
    "ProcessGroup",
    "QueueEmptyError",
    "ReduceOp",
    "Store",
    "TCPStore",
    "Work",
    "all_gather_into_tensor",
    "all_reduce",
    "destroy_process_group",
    "get_backend",
    "get_rank",
    "get_world_size",
    "init_process_group",
    "is_available",
    "is_initialized",
    "reduce_scatter_tensor",
    "register_rendezvous_handler",
    "rendezvous",
]

sys.modules[__name__].__class__ = CallableModule
