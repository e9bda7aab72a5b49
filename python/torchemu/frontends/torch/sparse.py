"""Collectives of sparse tensors, which gloo has one of."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
import torch.distributed as dist

from torchemu.frontends.torch import checks
from torchemu.frontends.torch.works import Several

if TYPE_CHECKING:
    from torchemu.frontends.torch.groups import AhbmGroup


def all_reduce(group: AhbmGroup, tensors: list[torch.Tensor], op: Any) -> Any:
    """all_reduce of sparse tensors: every rank gets the indices and values of all, and adds them up; also where each
    brings several.

    Raises:
        RuntimeError: another layout, another op than SUM, or NCCL, which has none; the tensors are not alike.
    """
    if group.backend == "nccl":
        raise RuntimeError("NCCL does not support all_reduce with sparse tensors. Please use dense tensors instead.")
    if tensors[0].layout is not torch.sparse_coo:
        raise RuntimeError("ProcessGroupGloo::allreduce: unsupported layout")
    if getattr(op, "op", op) != dist.ReduceOp.SUM:
        raise RuntimeError(
            "ProcessGroupGloo::allreduce: unsupported reduction operation "
            "(allreduce of sparse tensors only works with ReduceOp.SUM)"
        )
    checks.alike("allreduce", tensors[1:], tensors[0])
    total = _summed(group, sum(tensors[1:], tensors[0]))
    for tensor in tensors:
        tensor.copy_(total)
    return _Done(tensors)


def _summed(group: AhbmGroup, tensor: torch.Tensor) -> torch.Tensor:
    mine = tensor.coalesce()
    counts = [torch.zeros(1, dtype=torch.int64) for _ in range(group.size())]
    group.allgather([counts], [torch.tensor([mine._nnz()])]).wait()
    sizes = [int(count) for count in counts]
    indices = _gathered(group, mine.indices().t().contiguous(), sizes)
    values = _gathered(group, mine.values().contiguous(), sizes)
    parts = [torch.sparse_coo_tensor(i.t(), v, mine.shape) for i, v in zip(indices, values, strict=True)]
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    return total.coalesce()


def _gathered(group: AhbmGroup, mine: torch.Tensor, sizes: list[int]) -> list[torch.Tensor]:
    """The rows of all ranks, of which each sends as many as the one with the most."""
    sent = mine.new_zeros(max(sizes), *mine.shape[1:])
    sent[: len(mine)] = mine
    outs = [torch.empty_like(sent) for _ in sizes]
    group.allgather([outs], [sent]).wait()
    return [out[:size] for out, size in zip(outs, sizes, strict=True)]


class _Done(Several):
    """The work of what has been done."""

    def __init__(self, outputs: Any) -> None:
        super().__init__([], outputs)
