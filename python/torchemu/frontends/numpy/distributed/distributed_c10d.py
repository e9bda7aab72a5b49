"""The names that programs import from torch.distributed.distributed_c10d, public and private."""

from __future__ import annotations

import warnings
from datetime import timedelta
from typing import Any

from torchemu.c10d.backends import (
    Backend,
    BackendConfig,
    get_default_backend_for_device,
    get_node_local_rank,
    is_backend_available,
    is_gloo_available,
    is_mpi_available,
    is_nccl_available,
    is_torchelastic_launched,
    is_ucc_available,
    is_xccl_available,
)
from torchemu.c10d.backends import default_timeout as _get_default_timeout
from torchemu.c10d.barriers import barrier, monitored_barrier
from torchemu.c10d.coalescing import CoalescingManager as _CoalescingManager
from torchemu.c10d.coalescing import _coalescing_manager
from torchemu.c10d.debug import DebugLevel, get_debug_level
from torchemu.c10d.estimates import TimeEstimator as _TimeEstimator
from torchemu.c10d.estimates import _time_estimator
from torchemu.c10d.exchanges import (
    all_gather,
    all_gather_coalesced,
    all_gather_into_tensor,
    all_gather_single,
    all_to_all,
    all_to_all_single,
    broadcast,
    gather,
    gather_into_tensor,
    gather_single,
    scatter,
)
from torchemu.c10d.groups import (
    get_backend,
    get_backend_config,
    get_global_rank,
    get_group_rank,
    get_pg_count,
    get_process_group_ranks,
    get_rank,
    get_world_size,
)
from torchemu.c10d.groups import get_world_size as _get_group_size
from torchemu.c10d.groups import is_outside as _rank_not_in_group
from torchemu.c10d.groups import warn_outsider as _warn_not_in_group
from torchemu.c10d.lifecycle import abort_process_group as _abort_process_group
from torchemu.c10d.lifecycle import default_store as _get_default_store
from torchemu.c10d.lifecycle import destroy_process_group, init_process_group, is_initialized
from torchemu.c10d.new_groups import (
    SHRINK_ABORT,
    SHRINK_DEFAULT,
    new_group,
    new_subgroups,
    new_subgroups_by_enumeration,
    shrink_group,
    split_group,
)
from torchemu.c10d.objects import (
    all_gather_object,
    broadcast_object_list,
    gather_object,
    recv_object_list,
    scatter_object_list,
    send_object_list,
)
from torchemu.c10d.p2p import P2POp, batch_isend_irecv, irecv, isend, recv, send
from torchemu.c10d.reduce_op import ReduceOp, _make_nccl_premul_sum, reduce_op, supports_complex
from torchemu.c10d.reductions import (
    all_reduce,
    all_reduce_coalesced,
    reduce,
    reduce_scatter,
    reduce_scatter_single,
    reduce_scatter_tensor,
)
from torchemu.c10d.rendezvous import register_rendezvous_handler, rendezvous
from torchemu.c10d.stores import PrefixStore, Store
from torchemu.c10d.work import IllegalWork as _IllegalWork
from torchemu.c10d.work import Work
from torchemu.errors import DistStoreError
from torchemu.frontends.numpy._absent import lacks
from torchemu.frontends.numpy.distributed._backend_groups import ProcessGroupGloo, ProcessGroupNCCL
from torchemu.frontends.numpy.distributed._options import (
    AllgatherOptions,
    AllreduceCoalescedOptions,
    AllreduceOptions,
    AllToAllOptions,
    BarrierOptions,
    BroadcastOptions,
    GatherOptions,
    ReduceOptions,
    ReduceScatterOptions,
    ScatterOptions,
)
from torchemu.frontends.numpy.distributed._process_group import (
    GroupMember,
    ProcessGroup,
    get_backend_impl,
    group,
    resolved,
)
from torchemu.frontends.numpy.distributed._process_group import default_group as _get_default_group
from torchemu.frontends.numpy.distributed._process_group import find_by_name as _resolve_process_group
from torchemu.frontends.numpy.distributed.constants import default_pg_nccl_timeout, default_pg_timeout

__all__ = [
    "SHRINK_ABORT",
    "SHRINK_DEFAULT",
    "AllToAllOptions",
    "AllgatherOptions",
    "AllreduceCoalescedOptions",
    "AllreduceOptions",
    "Backend",
    "BackendConfig",
    "BarrierOptions",
    "BroadcastOptions",
    "DebugLevel",
    "DistStoreError",
    "GatherOptions",
    "GroupMember",
    "P2POp",
    "PrefixStore",
    "ProcessGroup",
    "ProcessGroupGloo",
    "ProcessGroupNCCL",
    "ReduceOp",
    "ReduceOptions",
    "ReduceScatterOptions",
    "ScatterOptions",
    "Store",
    "Work",
    "_CoalescingManager",
    "_IllegalWork",
    "_TimeEstimator",
    "_abort_process_group",
    "_all_gather_base",
    "_coalescing_manager",
    "_get_default_group",
    "_get_default_store",
    "_get_default_timeout",
    "_get_group_size",
    "_make_nccl_premul_sum",
    "_rank_not_in_group",
    "_reduce_scatter_base",
    "_resolve_process_group",
    "_set_pg_timeout",
    "_time_estimator",
    "_warn_not_in_group",
    "all_gather",
    "all_gather_coalesced",
    "all_gather_into_tensor",
    "all_gather_object",
    "all_gather_single",
    "all_reduce",
    "all_reduce_coalesced",
    "all_to_all",
    "all_to_all_single",
    "barrier",
    "batch_isend_irecv",
    "broadcast",
    "broadcast_object_list",
    "default_pg_nccl_timeout",
    "default_pg_timeout",
    "destroy_process_group",
    "gather",
    "gather_into_tensor",
    "gather_object",
    "gather_single",
    "get_backend",
    "get_backend_config",
    "get_backend_impl",
    "get_debug_level",
    "get_default_backend_for_device",
    "get_global_rank",
    "get_group_rank",
    "get_node_local_rank",
    "get_pg_count",
    "get_process_group_ranks",
    "get_rank",
    "get_world_size",
    "group",
    "init_process_group",
    "irecv",
    "is_backend_available",
    "is_gloo_available",
    "is_initialized",
    "is_mpi_available",
    "is_nccl_available",
    "is_torchelastic_launched",
    "is_ucc_available",
    "is_xccl_available",
    "isend",
    "monitored_barrier",
    "new_group",
    "new_subgroups",
    "new_subgroups_by_enumeration",
    "recv",
    "recv_object_list",
    "reduce",
    "reduce_op",
    "reduce_scatter",
    "reduce_scatter_single",
    "reduce_scatter_tensor",
    "register_rendezvous_handler",
    "rendezvous",
    "scatter",
    "scatter_object_list",
    "send",
    "send_object_list",
    "set_timeout",
    "shrink_group",
    "split_group",
    "supports_complex",
]


def _all_gather_base(
    output_tensor: Any, input_tensor: Any, group: ProcessGroup | None = None, async_op: bool = False
) -> Work | None:
    """all_gather_into_tensor, with a warning."""
    _warn_of_base("_all_gather_base", "all_gather_into_tensor")
    return all_gather_into_tensor(output_tensor, input_tensor, group, async_op)


def _reduce_scatter_base(
    output: Any,
    input: Any,  # noqa: A002 (PyTorch's name)
    op: Any = ReduceOp.SUM,
    group: ProcessGroup | None = None,
    async_op: bool = False,
) -> Work | None:
    """reduce_scatter_tensor, with a warning."""
    _warn_of_base("_reduce_scatter_base", "reduce_scatter_tensor")
    return reduce_scatter_tensor(output, input, op, group, async_op)


def _warn_of_base(old: str, new: str) -> None:
    warnings.warn(
        f"`torch.distributed.{old}` is a private function and will be deprecated. Please use "
        f"`torch.distributed.{new}` instead.",
        FutureWarning,
        stacklevel=3,
    )


def _get_process_group_name(pg: ProcessGroup) -> str:
    """The name by which _resolve_process_group finds the group."""
    return pg.group_name


def _set_pg_timeout(timeout: timedelta, group: ProcessGroup | None = None) -> None:
    """Changes how long operations of a group may take."""
    resolved(group).set_timeout(timeout)


def set_timeout(timeout: timedelta, group: ProcessGroup | None = None) -> None:
    """Changes how long operations of a group may take."""
    resolved(group).set_timeout(timeout)


__getattr__ = lacks(__name__)
