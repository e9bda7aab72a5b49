"""Symmetric memory that operations of a group share, and the layouts that fused operations like best."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

from torchemu import dtypes
from torchemu.frontends.numpy import _settings
from torchemu.frontends.numpy._tensor import Tensor
from torchemu.frontends.numpy.distributed._process_group import find_by_name
from torchemu.frontends.numpy.distributed._symmetric_memory._handle import _SymmetricMemory, rendezvous
from torchemu.frontends.numpy.distributed._symmetric_memory._peers import allocated
from torchemu.runtime.rank_local import RankLocal

_workspaces: RankLocal[dict[str, Tensor]] = RankLocal(dict)
"""Those of the running rank, by group."""


def get_symm_mem_workspace(group_name: str, min_size: int) -> _SymmetricMemory:
    """The memory that the ranks of a group share for whatever operations need. All of them call this alike.

    Args:
        group_name: the group.
        min_size: bytes; where there are less so far, there is new memory.
    """
    mine = _workspaces.get()
    workspace = mine.get(group_name)
    if workspace is None or workspace.nbytes < min_size:
        workspace = mine[group_name] = allocated((min_size,), dtypes.parse("uint8"), _settings.resolved("cuda"))
    return rendezvous(workspace, find_by_name(group_name))


def enable_symm_mem_for_group(group_name: str) -> None:
    """Does nothing, with a warning: every group can have symmetric memory.

    Raises:
        RuntimeError: there is no such group.
    """
    warnings.warn(
        "`enable_symm_mem_for_group` is deprecated. There is no need to call this function anymore.",
        FutureWarning,
        stacklevel=2,
    )
    find_by_name(group_name)


def is_symm_mem_enabled_for_group(group_name: str) -> bool:
    """Reports whether there is such a group."""
    try:
        find_by_name(group_name)
    except RuntimeError:
        return False
    return True


def make_contiguous_for_perm(t: Tensor, perm: Sequence[int]) -> Tensor:
    """The elements in such an order that ``permute(perm)`` is contiguous."""
    inverse = sorted(range(len(perm)), key=perm.__getitem__)
    return t.permute(*perm).contiguous().permute(*inverse)


def restride_A_shard_for_fused_all_gather_matmul(t: Tensor, gather_dim: int) -> Tensor:  # noqa: N802 (PyTorch's name)
    """The elements in such an order that the dimension comes first in memory."""
    rest = [dim for dim in range(t.ndim) if dim != gather_dim % t.ndim]
    return make_contiguous_for_perm(t, [gather_dim % t.ndim, *rest])


def restride_A_for_fused_matmul_reduce_scatter(t: Tensor, scatter_dim: int) -> Tensor:  # noqa: N802
    """The elements in such an order that the dimension comes first in memory."""
    return restride_A_shard_for_fused_all_gather_matmul(t, scatter_dim)
