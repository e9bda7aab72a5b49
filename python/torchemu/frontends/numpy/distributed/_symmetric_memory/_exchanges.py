"""Exchanges among all ranks whose sizes are tensors: no host has to know them before."""

from __future__ import annotations

from collections.abc import Sequence

import torchemu.frontends.numpy as torch
from torchemu.frontends.numpy._tensor import Tensor
from torchemu.frontends.numpy.distributed import distributed_c10d as c10d
from torchemu.frontends.numpy.distributed._process_group import ProcessGroup, find_by_name


def all_to_all_vdev(
    input: Tensor,  # noqa: A002 (PyTorch's name)
    out: Tensor,
    in_splits: Tensor,
    out_splits_offsets: Tensor,
    group_name: str,
) -> None:
    """Sends in_splits[r] rows of the input to rank r.

    Args:
        input, out: rows; out has room for what comes.
        in_splits: int64, of a number for each rank.
        out_splits_offsets: int64, of 2 × ranks: filled with how many rows came from each rank, and where they are.

    Raises:
        RuntimeError: out has no room; the numbers do not fit the input.
    """
    group = find_by_name(group_name)
    given, taken = _splits(in_splits, group)
    _exchange("all_to_all_vdev", input, out, given, taken, group)
    _tell(out_splits_offsets, taken, _starts(taken))


def all_to_all_vdev_2d(
    input: Tensor,  # noqa: A002
    out: Tensor,
    in_splits: Tensor,
    out_splits_offsets: Tensor,
    group_name: str,
    major_align: int | None = None,
) -> None:
    """Sends rows to the experts of all ranks. They are sorted by rank and there by expert; what comes is sorted by
    expert and there by the rank that it comes from.

    Args:
        input, out: rows; out has room for what comes.
        in_splits: int64, of a number for each expert of rank 0, then of rank 1, and so on.
        out_splits_offsets: int64, of 2 × as many: filled with how many rows came for each expert from each rank, and
            where they are.
        major_align: the rows of an expert begin at a multiple of this, and are not less than this; None is 1.

    Raises:
        RuntimeError: as all_to_all_vdev; the experts cannot be shared equally among the ranks; major_align is not
            positive.
    """
    group, align = find_by_name(group_name), 1 if major_align is None else major_align
    world = group.size()
    if align <= 0:
        raise RuntimeError("major_align must be positive")
    if in_splits.numel() % world:
        raise RuntimeError(f"all_to_all_vdev_2d: {in_splits.numel()} splits are not for {world} ranks")
    given, taken = _splits(in_splits, group)
    experts = len(given) // world
    by_rank = [sum(taken[r * experts : (r + 1) * experts]) for r in range(world)]
    come = torch.empty((sum(taken), *input.shape[1:]), dtype=input.dtype, device=input.device)
    sent = [sum(given[r * experts : (r + 1) * experts]) for r in range(world)]
    _exchange("all_to_all_vdev_2d", input, come, sent, by_rank, group)
    places = [r * experts + e for e in range(experts) for r in range(world)]  # in what came, in the order of out
    sizes = [taken[place] for place in places]
    starts = _aligned_starts(sizes, world, align)
    _check_room("all_to_all_vdev_2d", out, max(map(sum, zip(starts, sizes, strict=True))))
    come_from = _starts(taken)
    _move(come, [come_from[place] for place in places], out, starts, sizes)
    _tell(out_splits_offsets, sizes, starts)


def all_to_all_vdev_2d_offset(
    input: Tensor,  # noqa: A002
    out: Tensor,
    in_splits_offsets: Tensor,
    out_splits_offsets: Tensor,
    group_name: str,
) -> None:
    """Sends rows back from experts: what is sorted by expert and there by the rank that it is for, comes sorted by rank
    and there by its expert.

    Args:
        input, out: rows; out has room for what comes.
        in_splits_offsets: int64, 2 × as many as experts of all ranks: how many rows are for each rank from each expert,
            and where they are; all_to_all_vdev_2d says it so.
        out_splits_offsets: int64, as large: filled with how many rows came from each expert of each rank, and where
            they are.

    Raises:
        RuntimeError: as all_to_all_vdev_2d.
    """
    group = find_by_name(group_name)
    world = group.size()
    if in_splits_offsets.shape[0] != 2 or in_splits_offsets[0].numel() % world:
        raise RuntimeError(
            "in_splits_offsets must be 2D with 2 rows, each row must be a multiple of world_size, but has shape "
            f"{list(in_splits_offsets.shape)}"
        )
    splits, offsets = _numbers(in_splits_offsets[0]), _numbers(in_splits_offsets[1])
    experts = len(splits) // world
    places = [e * world + r for r in range(world) for e in range(experts)]  # in the input, in the order of the ranks
    given, taken = _splits(torch.tensor([splits[p] for p in places], device=in_splits_offsets.device), group)
    sent, by_rank = ([sum(n[r * experts : (r + 1) * experts]) for r in range(world)] for n in (given, taken))
    packed = torch.empty((sum(sent), *input.shape[1:]), dtype=input.dtype, device=input.device)
    _check_rows("all_to_all_vdev_2d_offset", input, splits, offsets)
    _move(input, [offsets[p] for p in places], packed, _starts(given), given)
    _exchange("all_to_all_vdev_2d_offset", packed, out, sent, by_rank, group)
    _tell(out_splits_offsets, taken, _starts(taken))


def _check_rows(operation: str, given: Tensor, splits: Sequence[int], offsets: Sequence[int]) -> None:
    for rows, start in zip(splits, offsets, strict=True):
        if rows and not 0 <= start <= given.shape[0] - rows:
            raise RuntimeError(f"{operation}: the input has {given.shape[0]} rows, but {rows} are sent from {start} on")


def _aligned_starts(sizes: Sequence[int], world: int, align: int) -> list[int]:
    """Returns where blocks begin, of which those of one expert follow each other. No expert is without rows, where
    devices' grouped products could not bear it."""
    starts, begin = [], 0
    for first in range(0, len(sizes), world):
        block = sizes[first : first + world]
        starts += [begin + start for start in _starts(block)]
        begin += max(-(-sum(block) // align), 1) * align
    return starts


def _splits(in_splits: Tensor, group: ProcessGroup) -> tuple[list[int], list[int]]:
    """Returns what this rank gives to each, and what it gets from each."""
    received = torch.empty_like(in_splits)
    c10d.all_to_all_single(received, in_splits, group=group)
    return _numbers(in_splits), _numbers(received)


def _numbers(t: Tensor) -> list[int]:
    """The elements, as soon as they are known: on a device the host would not see them at all."""
    numbers: list[int] = t._read().tolist()
    return numbers


def _starts(sizes: Sequence[int]) -> list[int]:
    return [sum(sizes[:i]) for i in range(len(sizes))]


def _exchange(
    operation: str, given: Tensor, out: Tensor, sent: list[int], taken: list[int], group: ProcessGroup
) -> None:
    _check_room(operation, out, sum(taken))
    if sum(sent) > given.shape[0]:
        raise RuntimeError(f"{operation}: the input has {given.shape[0]} rows, but {sum(sent)} are to be sent")
    c10d.all_to_all_single(out[: sum(taken)], given[: sum(sent)], taken, sent, group)


def _check_room(operation: str, out: Tensor, rows: int) -> None:
    if rows > out.shape[0]:
        raise RuntimeError(f"{operation}: out has {out.shape[0]} rows, but {rows} come")


def _move(source: Tensor, starts: Sequence[int], out: Tensor, places: Sequence[int], sizes: Sequence[int]) -> None:
    """Copies blocks of rows, of these sizes, from where they start to their places."""
    rows = [start + i for start, size in zip(starts, sizes, strict=True) for i in range(size)]
    targets = [place + i for place, size in zip(places, sizes, strict=True) for i in range(size)]
    if not rows:
        return
    moved = source[torch.tensor(rows, device=source.device)]
    if targets == list(range(len(rows))):
        out[: len(rows)].copy_(moved)
    else:
        out.index_copy_(0, torch.tensor(targets, device=out.device), moved)


def _tell(out_splits_offsets: Tensor, splits: list[int], offsets: list[int]) -> None:
    told = torch.tensor([splits, offsets], dtype=torch.int64, device=out_splits_offsets.device)
    out_splits_offsets.copy_(told)
