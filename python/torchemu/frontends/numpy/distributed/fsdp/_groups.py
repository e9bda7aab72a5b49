"""The ranks that share a module's parameters, and those that have the same part."""

from __future__ import annotations

import os
from typing import Any

from torchemu.frontends.numpy.distributed import ProcessGroup, get_rank, get_world_size, new_group
from torchemu.frontends.numpy.distributed._process_group import resolved
from torchemu.frontends.numpy.distributed.fsdp.api import ShardingStrategy

_HYBRID = (ShardingStrategy.HYBRID_SHARD, ShardingStrategy._HYBRID_SHARD_ZERO2)


def groups_of(given: Any, mesh: Any, strategy: ShardingStrategy) -> tuple[ProcessGroup, ProcessGroup | None]:
    """Both groups; the second is None where each rank's part is its own.

    Raises:
        ValueError: both a group and a mesh are given, or not what a hybrid strategy wants.
    """
    if given is not None and mesh is not None:
        raise ValueError(
            "Cannot pass both process_group and device_mesh at the same time. Please just pass only one of them."
        )
    if strategy not in _HYBRID:
        return resolved(mesh.get_group() if mesh is not None else given), None
    if mesh is not None:
        if mesh.ndim != 2:
            raise ValueError(f"device_mesh must have two dimensions for {strategy}, not {mesh.ndim}")
        return mesh.get_group(mesh_dim=1), mesh.get_group(mesh_dim=0)
    if given is None:
        return _by_node()
    if not (isinstance(given, tuple) and len(given) == 2 and all(isinstance(each, ProcessGroup) for each in given)):
        raise ValueError(
            "Expected process_group to be passed in as either None or Tuple[dist.ProcessGroup, dist.ProcessGroup] for "
            f"hybrid sharding, but got {type(given)}"
        )
    return given


def _by_node() -> tuple[ProcessGroup, ProcessGroup]:
    """Ranks of a node share."""
    size, rank = get_world_size(), get_rank()
    local = int(os.environ.get("LOCAL_WORLD_SIZE", size))
    within = [new_group(list(range(first, first + local))) for first in range(0, size, local)]
    across = [new_group(list(range(at, size, local))) for at in range(local)]
    return within[rank // local], across[rank % local]
