"""Data that one rank of a tensor parallel group has read, for all of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torchemu.frontends.numpy as torch
from torchemu.frontends.numpy import distributed as dist
from torchemu.frontends.numpy.distributed import ProcessGroup
from torchemu.tp.utils import get_tensor_model_parallel_group_if_none

__all__ = ["broadcast_data"]

_MOST_DIMENSIONS = 5


def broadcast_data(
    keys: Sequence[str],
    data: Mapping[str, torch.Tensor] | None,
    datatype: torch.dtype,
    tp_group: ProcessGroup | None = None,
) -> dict[str, torch.Tensor]:
    """Hands the tensors of the group's first rank to all of its ranks.

    Args:
        keys: which.
        data: by key; only the first rank's is looked at.
        datatype: of all of them.
        tp_group: the ranks; None: the tensor model parallel group.

    Returns:
        the tensors by key, on the rank's device.

    Raises:
        AssertionError: one is of another dtype, or has more than 4 dimensions.
    """
    group = get_tensor_model_parallel_group_if_none(tp_group)
    given = None if group.rank() else [data[key] for key in keys] if data is not None else []
    shapes = _broadcast_shapes(keys, given, group)
    sizes = [shape.numel() for shape in shapes]
    device = torch.cuda.current_device()
    flat = torch.empty(sum(sizes), dtype=datatype, device=device)
    if given:
        _check_dtypes(keys, given, datatype)
        flat.copy_(torch.cat([t.contiguous().view(-1).to(device) for t in given]))
    dist.broadcast(flat, group.ranks[0], group=group)
    return {key: part.view(shape) for key, part, shape in zip(keys, flat.split(sizes), shapes, strict=True)}


def _check_dtypes(keys: Sequence[str], given: Sequence[torch.Tensor], datatype: torch.dtype) -> None:
    for key, t in zip(keys, given, strict=True):
        assert t.dtype == datatype, f"{key} has data type {t.dtype} which is different than {datatype}"


def _broadcast_shapes(
    keys: Sequence[str], given: Sequence[torch.Tensor] | None, group: ProcessGroup
) -> list[torch.Size]:
    """The shapes of the first rank's tensors: each number of dimensions, followed by these."""
    rows = [[0] * _MOST_DIMENSIONS for _ in keys]
    for row, t in zip(rows, given or (), strict=False):
        assert t.dim() < _MOST_DIMENSIONS, f"you should increase MAX_DATA_DIM: a tensor has {t.dim()} dimensions"
        row[: t.dim() + 1] = [t.dim(), *t.shape]
    table = torch.tensor(rows, dtype=torch.long, device=torch.cuda.current_device())
    dist.broadcast(table, group.ranks[0], group=group)
    return [torch.Size(row[1 : 1 + row[0]]) for row in table.tolist()]
