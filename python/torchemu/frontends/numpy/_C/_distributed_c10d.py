"""torch._C._distributed_c10d: what PyTorch's core has of torch.distributed, under the names it has there."""

from __future__ import annotations

from torchemu.c10d.completion import OpType, WorkInfo
from torchemu.c10d.flight_files import FlightRecorderHook
from torchemu.c10d.flight_files import dump_trace as _dump_fr_trace
from torchemu.c10d.flight_files import dump_trace_file as _dump_fr_trace_file
from torchemu.c10d.flight_files import dump_trace_json as _dump_fr_trace_json
from torchemu.c10d.flight_files import reset_trace as _reset_fr_trace
from torchemu.c10d.groups import register_by_name as _register_process_group
from torchemu.c10d.groups import unregister_by_name as _unregister_process_group
from torchemu.c10d.hooks import HookOpName, NanCheckHook, PostHookArgs, PreHookArgs
from torchemu.frontends.numpy.distributed import (
    AllreduceCoalescedOptions,
    AllreduceOptions,
    AllToAllOptions,
    BarrierOptions,
    BroadcastOptions,
    DebugLevel,
    FileStore,
    GatherOptions,
    HashStore,
    PrefixStore,
    ProcessGroup,
    ProcessGroupGloo,
    ProcessGroupNCCL,
    ReduceOp,
    ReduceOptions,
    ReduceScatterOptions,
    ScatterOptions,
    Store,
    TCPStore,
    Work,
    get_debug_level,
    set_debug_level,
    set_debug_level_from_env,
)
from torchemu.frontends.numpy.distributed._backend_groups import Backend
from torchemu.frontends.numpy.distributed._custom_groups import DistributedBackendOptions as _DistributedBackendOptions
from torchemu.frontends.numpy.distributed._options import AllgatherOptions
from torchemu.frontends.numpy.distributed.constants import default_pg_nccl_timeout, default_pg_timeout
from torchemu.frontends.numpy.distributed.distributed_c10d import _make_nccl_premul_sum, _resolve_process_group

_DEFAULT_PG_NCCL_TIMEOUT, _DEFAULT_PG_TIMEOUT = default_pg_nccl_timeout, default_pg_timeout
_dump_nccl_trace, _dump_nccl_trace_json = _dump_fr_trace, _dump_fr_trace_json
_reset_fr_recording_nccl = _reset_fr_trace

__all__ = [
    "_DEFAULT_PG_NCCL_TIMEOUT",
    "_DEFAULT_PG_TIMEOUT",
    "AllToAllOptions",
    "AllgatherOptions",
    "AllreduceCoalescedOptions",
    "AllreduceOptions",
    "Backend",
    "BarrierOptions",
    "BroadcastOptions",
    "DebugLevel",
    "FileStore",
    "FlightRecorderHook",
    "GatherOptions",
    "HashStore",
    "HookOpName",
    "NanCheckHook",
    "OpType",
    "PostHookArgs",
    "PreHookArgs",
    "PrefixStore",
    "ProcessGroup",
    "ProcessGroupGloo",
    "ProcessGroupNCCL",
    "ReduceOp",
    "ReduceOptions",
    "ReduceScatterOptions",
    "ScatterOptions",
    "Store",
    "TCPStore",
    "Work",
    "WorkInfo",
    "_DistributedBackendOptions",
    "_dump_fr_trace",
    "_dump_fr_trace_file",
    "_dump_fr_trace_json",
    "_dump_nccl_trace",
    "_dump_nccl_trace_json",
    "_make_nccl_premul_sum",
    "_register_process_group",
    "_reset_fr_recording_nccl",
    "_reset_fr_trace",
    "_resolve_process_group",
    "_unregister_process_group",
    "get_debug_level",
    "set_debug_level",
    "set_debug_level_from_env",
]
