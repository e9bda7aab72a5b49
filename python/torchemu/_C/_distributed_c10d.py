"""torch._C._distributed_c10d: what PyTorch's core has of torch.distributed, under the names it has there."""

from __future__ import annotations

from torchemu.distributed._flight_recorder import FlightRecorderHook
from torchemu.distributed._flight_recorder import dump_trace as _dump_fr_trace
from torchemu.distributed._flight_recorder import dump_trace_json as _dump_fr_trace_json
from torchemu.distributed._flight_recorder import reset_trace as _reset_fr_trace
from torchemu.distributed._hooks import HookOpName, NanCheckHook, PostHookArgs, PreHookArgs
from torchemu.distributed._symmetric_memory._handle import _SymmetricMemory

_dump_nccl_trace, _dump_nccl_trace_json = _dump_fr_trace, _dump_fr_trace_json
_reset_fr_recording_nccl = _reset_fr_trace

__all__ = [
    "FlightRecorderHook",
    "HookOpName",
    "NanCheckHook",
    "PostHookArgs",
    "PreHookArgs",
    "_SymmetricMemory",
    "_dump_fr_trace",
    "_dump_fr_trace_json",
    "_dump_nccl_trace",
    "_dump_nccl_trace_json",
    "_reset_fr_recording_nccl",
    "_reset_fr_trace",
]
