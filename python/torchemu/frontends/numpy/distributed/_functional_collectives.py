"""Functional collectives: they return new tensors instead of changing their arguments, and never wait by themselves.

Every group is given as a ProcessGroup, its name, or the ranks of a group that exists. The reduce op is a name: "sum",
"avg", ….
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import torchemu.frontends.numpy as torch
from torchemu.c10d.membership import groups
from torchemu.c10d.reduce_op import reduction_of
from torchemu.c10d.work import Work
from torchemu.frontends.numpy._tensor import Tensor
from torchemu.frontends.numpy.distributed import distributed_c10d as c10d
from torchemu.frontends.numpy.distributed._async_tensor import AsyncCollectiveTensor
from torchemu.frontends.numpy.distributed._process_group import find_by_name

Ranks = Any
"""What names a group; see above."""


def wait_tensor(tensor: Tensor) -> Tensor:
    """The tensor itself, for which the current stream now waits."""
    return tensor.trigger_wait() if isinstance(tensor, AsyncCollectiveTensor) else tensor


def wait_tensors(tensors: Sequence[Tensor]) -> list[Tensor]:
    """The tensors themselves, for which the current stream now waits."""
    return [wait_tensor(t) for t in tensors]


def all_reduce(self: Tensor, reduceOp: str, group: Ranks, tag: str = "") -> Tensor:  # noqa: N803 (PyTorch's name)
    """The reduction over all ranks."""
    reduction = _reduction(reduceOp)
    if self.dtype.is_complex and not c10d.supports_complex(reduction_of(reduction)):
        raise RuntimeError(f"all_reduce: reduce_op {reduction} does not support complex tensors")
    output = self.clone()
    return _filled(output, c10d.all_reduce(output, reduction, _group(group, tag), async_op=True))


def broadcast(self: Tensor, src: int, group: Ranks, tag: str = "") -> Tensor:
    """The tensor of the group rank src."""
    output = self.clone()
    return _filled(output, c10d.broadcast(output, group=_group(group, tag), async_op=True, group_src=src))


def all_gather_tensor(self: Tensor, gather_dim: int, group: Ranks, tag: str = "") -> Tensor:
    """All ranks' tensors, one after another along a dimension."""
    ranks = _group(group, tag)
    output, work = _gather(self, ranks)
    return _along(_filled(output, work), gather_dim, ranks.size())


def reduce_scatter_tensor(
    self: Tensor,
    reduceOp: str,  # noqa: N803
    scatter_dim: int,
    group: Ranks,
    tag: str = "",
) -> Tensor:
    """This rank's part, cut along a dimension, of the reduction over all ranks."""
    ranks = _group(group, tag)
    given = _for_scatter(self, scatter_dim, ranks.size())
    output, work = _reduce_part(given, reduceOp, ranks)
    return _filled(output, work)


def all_to_all_single(
    self: Tensor,
    output_split_sizes: Sequence[int] | None,
    input_split_sizes: Sequence[int] | None,
    group: Ranks,
    tag: str = "",
) -> Tensor:
    """The rows that all ranks send to this one, which sends the r-th part of its own to rank r.

    Args:
        output_split_sizes, input_split_sizes: the numbers of rows for each rank; None for both is equal parts.
    """
    if (output_split_sizes is None) != (input_split_sizes is None):
        raise AssertionError(
            "output_split_sizes and input_split_sizes must either be specified together or both set to None"
        )
    given = self.contiguous()
    rows = given.shape[0] if output_split_sizes is None else sum(output_split_sizes)
    output = torch.empty((rows, *given.shape[1:]), dtype=given.dtype, device=given.device)
    work = c10d.all_to_all_single(
        output, given, output_split_sizes, input_split_sizes, _group(group, tag), async_op=True
    )
    return _filled(output, work)


def permute_tensor(self: Tensor, src_dst: Sequence[int], group: Ranks, tag: str = "") -> Tensor:
    """The tensor of the rank s with src_dst[s] == this rank.

    Raises:
        ValueError: src_dst is not a permutation of the group's ranks.
    """
    ranks = _group(group, tag)
    size, me = ranks.size(), ranks.rank()
    if sorted(src_dst) != list(range(size)):
        raise ValueError(f"src_dst must name each of the ranks 0 to {size - 1} once, not {list(src_dst)}")
    flat = self.contiguous().reshape(-1)
    sent = [flat.numel() if rank == src_dst[me] else 0 for rank in range(size)]
    received = [flat.numel() if src_dst[rank] == me else 0 for rank in range(size)]
    output = torch.empty(self.shape, dtype=self.dtype, device=self.device)
    work = c10d.all_to_all_single(output.view(-1), flat, received, sent, ranks, async_op=True)
    return _filled(output, work)


def all_reduce_coalesced(
    self: Sequence[Tensor],
    reduceOp: str,  # noqa: N803
    group: Ranks,
    tag: str = "",
) -> list[Tensor]:
    """all_reduce of several tensors in one go."""
    ranks = _group(group, tag)
    outputs = [t.clone() for t in self]
    with c10d._coalescing_manager(ranks, async_ops=True) as manager:
        for output in outputs:
            c10d.all_reduce(output, _reduction(reduceOp), ranks)
    return _all_filled(outputs, manager.works)


def all_gather_into_tensor_coalesced(self: Sequence[Tensor], group: Ranks, tag: str = "") -> list[Tensor]:
    """all_gather_tensor, along the first dimension, of several tensors in one go."""
    ranks = _group(group, tag)
    with c10d._coalescing_manager(ranks, async_ops=True) as manager:
        outputs = [_gather(t, ranks)[0] for t in self]
    return _all_filled(outputs, manager.works)


def reduce_scatter_tensor_coalesced(
    inputs: Sequence[Tensor],
    reduceOp: str,  # noqa: N803
    scatter_dim: Sequence[int],
    group: Ranks,
    tag: str = "",
) -> list[Tensor]:
    """reduce_scatter_tensor of several tensors in one go, each cut along a dimension of its own."""
    ranks = _group(group, tag)
    if len(scatter_dim) != len(inputs):
        raise AssertionError(f"Length of scatter_dim ({len(scatter_dim)}) must equal length of inputs ({len(inputs)})")
    cut = [_for_scatter(t, dim, ranks.size()) for t, dim in zip(inputs, scatter_dim, strict=True)]
    with c10d._coalescing_manager(ranks, async_ops=True) as manager:
        outputs = [_reduce_part(t, reduceOp, ranks)[0] for t in cut]
    return _all_filled(outputs, manager.works)


all_gather_single, all_gather_single_coalesced = all_gather_tensor, all_gather_into_tensor_coalesced
reduce_scatter_single, reduce_scatter_single_coalesced = reduce_scatter_tensor, reduce_scatter_tensor_coalesced
"""What newer versions of PyTorch call them."""

# -- what they are made of


def _reduction(name: str) -> str:
    """The name of a reduce op, checked.

    Raises:
        RuntimeError: there is none of the name.
    """
    if not isinstance(name, str) or name.upper() not in _REDUCTIONS:
        raise RuntimeError(f"Unrecognized reduce_op: {name}")
    return name.lower()


_REDUCTIONS = ("SUM", "AVG", "PRODUCT", "MIN", "MAX", "BAND", "BOR", "BXOR")


def _filled(output: Tensor, work: Work | None) -> Tensor:
    return AsyncCollectiveTensor(output, work)


def _all_filled(outputs: Sequence[Tensor], works: Sequence[Work]) -> list[Tensor]:
    """Each with the work that fills it: a work fills some of the tensors, in order."""
    if len(works) == 1:
        return [AsyncCollectiveTensor(output, works[0]) for output in outputs]
    by_tensor = {id(t): work for work in works for t in work.result()}
    return [AsyncCollectiveTensor(output, by_tensor.get(id(output))) for output in outputs]


def _gather(given: Tensor, group: c10d.ProcessGroup) -> tuple[Tensor, Work | None]:
    given = given.contiguous()
    rows = (group.size() * given.shape[0], *given.shape[1:]) if given.shape else (group.size(),)
    output = torch.empty(rows, dtype=given.dtype, device=given.device)
    return output, c10d.all_gather_into_tensor(output, given, group, async_op=group.coalescing is None)


def _along(gathered: Tensor, dim: int, parts: int) -> Tensor:
    """Returns what lies one after another along the first dimension, along another one."""
    return gathered if dim == 0 else torch.cat(gathered.chunk(parts), dim=dim)


def _for_scatter(given: Tensor, dim: int, parts: int) -> Tensor:
    """With what lies one after another along a dimension along the first one."""
    if given.shape[dim] % parts:
        raise AssertionError(f"input dimension {dim} ({given.shape[dim]} must be a multiple of group_size {parts})")
    return given.contiguous() if dim == 0 else torch.cat(given.chunk(parts, dim=dim))


def _reduce_part(given: Tensor, op: str, group: c10d.ProcessGroup) -> tuple[Tensor, Work | None]:
    shape = (given.shape[0] // group.size(), *given.shape[1:])
    output = torch.empty(shape, dtype=given.dtype, device=given.device)
    return output, c10d.reduce_scatter_tensor(output, given, _reduction(op), group, async_op=group.coalescing is None)


def _resolve_group_name(group: Ranks, tag: str = "") -> str:
    """The name of the group that is meant."""
    return _group(group, tag).group_name


def _group(group: Ranks, tag: str) -> c10d.ProcessGroup:
    """The group that is meant.

    Raises:
        ValueError: nothing that names one, or there is none of the ranks.
        RuntimeError: there is none of the name.
    """
    if isinstance(group, c10d.ProcessGroup):
        return group
    if isinstance(group, str):
        return find_by_name(group)
    if isinstance(group, list):
        return _group_of_ranks(group)
    raise ValueError(f"Unsupported group type: {type(group)}, {group}")


def _group_of_ranks(ranks: list[Any]) -> c10d.ProcessGroup:
    warnings.warn(
        "The combination of ranks + tag as process group identifier has been deprecated. Please switch to using "
        "ProcessGroup or group name instead.",
        FutureWarning,
        stacklevel=4,
    )
    me = c10d.get_rank()
    rows = [row for row in ranks if me in row] if ranks and isinstance(ranks[0], list) else [ranks]
    for candidate in groups.get().by_name.values():
        if rows and list(candidate.ranks) == sorted(rows[0]):
            return candidate
    raise ValueError(f"there is no process group of the ranks {ranks}; make it with new_group")
