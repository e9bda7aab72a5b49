"""What DistributedDataParallel tells of itself: the entries of ``_get_ddp_logging_data``."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from torchemu.frontends.numpy.distributed import get_backend
from torchemu.frontends.numpy.nn.modules.batchnorm import SyncBatchNorm

if TYPE_CHECKING:
    from torchemu.frontends.numpy.nn.parallel.distributed import DistributedDataParallel


def logging_data(ddp: DistributedDataParallel) -> dict[str, Any]:
    """What PyTorch's logger knows of a module, but for times; numbers are integers, sizes in bytes."""
    return {**_of_construction(ddp), **_of_passes(ddp), **_of_surroundings(ddp)}


def _of_construction(ddp: DistributedDataParallel) -> dict[str, Any]:
    reducer, ids = ddp.reducer, ddp.device_ids or []
    kinds = dict.fromkeys(_title(p.dtype) for p in reducer.params)
    return {
        "module_name": type(ddp.module).__name__,
        "world_size": ddp.process_group.size(),
        "rank": ddp.process_group.rank(),
        "backend_name": get_backend(ddp.process_group),
        "device_ids": ", ".join(str(getattr(place, "index", place)) for place in ids),
        "output_device": -1 if ddp.output_device is None else int(getattr(ddp.output_device, "index", 0) or 0),
        "dtypes": ", ".join(kinds),
        "broadcast_buffers": int(ddp.broadcast_buffers),
        "bucket_cap_bytes": ddp.bucket_bytes_cap,
        "find_unused_parameters": int(ddp.find_unused_parameters),
        "gradient_as_bucket_view": int(ddp.gradient_as_bucket_view),
        "has_sync_bn": int(any(isinstance(module, SyncBatchNorm) for module in ddp.modules())),
        "is_multi_device_module": 0,
        "total_parameter_size_bytes": sum(p.nbytes for p in reducer.params),
        "bucket_sizes": ", ".join(str(size) for size in reducer.first_sizes),
        **({"static_graph": 1} if ddp.static_graph else {}),
        **({"comm_hook": reducer.hook_name} if reducer.hook_name else {}),
    }


def _title(kind: Any) -> str:
    """What PyTorch's core calls a dtype: float, double, c10::Half, …"""
    names = {"Float": "float", "Double": "double", "Half": "c10::Half", "BFloat16": "c10::BFloat16"}
    return names.get(kind.title, kind.name)


def _of_passes(ddp: DistributedDataParallel) -> dict[str, Any]:
    reducer = ddp.reducer
    if not reducer.passes:
        return {"iteration": 0}
    rebuilt: dict[str, Any] = {"has_rebuilt_buckets": 1} if reducer.rebuilt else {}
    if reducer.rebuilt:
        rebuilt["rebuilt_bucket_sizes"] = ", ".join(str(bucket.flat.nbytes) for bucket in reducer.buckets)
        rebuilt["rebuilt_per_bucket_param_indices"] = ", ".join(
            " ".join(map(str, bucket.numbers)) for bucket in reducer.buckets
        )
    return {
        "iteration": reducer.passes,
        "num_buckets_reduced": len(reducer.buckets),
        "unused_parameter_size": reducer.unused_bytes,
        **rebuilt,
    }


def _of_surroundings(ddp: DistributedDataParallel) -> dict[str, Any]:
    names = {"master_addr": "MASTER_ADDR", "master_port": "MASTER_PORT", "cuda_visible_devices": "CUDA_VISIBLE_DEVICES"}
    names["torch_distributed_debug"] = "TORCH_DISTRIBUTED_DEBUG"
    return {key: os.environ.get(name, "N/A") for key, name in names.items()}
