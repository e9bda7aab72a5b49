"""Exchanges among all ranks whose sizes are tensors: no host has to know them before."""

from __future__ import annotations

from collections.abc import Sequence

import torchemu
from torchemu._tensor import Tensor
from torchemu._unsupported import unsupported
from torchemu.distributed import distributed_c10d as c10d
from torchemu.distributed._groups import ProcessGroup, find_by_name


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
        major_align: None or 1.

    Raises:
        RuntimeError: as all_to_all_vdev; the experts cannot be shared equally among the ranks.
        NotImplementedError: major_align is another number.
    """
    if major_align not in (None, 1):
        raise unsupported("torch.ops.symm_mem.all_to_all_vdev_2d with major_align", "pad the rows of each expert")
    group = find_by_name(group_name)
    world = group.size()
    if in_splits.numel() % world:
        raise RuntimeError(f"all_to_all_vdev_2d: {in_splits.numel()} splits are not for {world} ranks")
    given, taken = _splits(in_splits, group)
    experts = len(given) // world
    by_rank = [sum(taken[r * experts : (r + 1) * experts]) for r in range(world)]
    come = torchemu.empty((sum(taken), *input.shape[1:]), dtype=input.dtype, device=input.device)
    sent = [sum(given[r * experts : (r + 1) * experts]) for r in range(world)]
    _exchange("all_to_all_vdev_2d", input, come, sent, by_rank, group)
    places = [r * experts + e for e in range(experts) for r in range(world)]  # in what came, in the order of out
    sizes = [taken[place] for place in places]
    _check_room("all_to_all_vdev_2d", out, sum(sizes))
    _put_in_order(out, come, taken, places)
    _tell(out_splits_offsets, sizes, _starts(sizes))


def _splits(in_splits: Tensor, group: ProcessGroup) -> tuple[list[int], list[int]]:
    """What this rank gives to each, and what it gets from each."""
    received = torchemu.empty_like(in_splits)
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


def _put_in_order(out: Tensor, come: Tensor, sizes: Sequence[int], places: Sequence[int]) -> None:
    """Copies blocks of rows, of these sizes, in the order of their places."""
    starts = _starts(sizes)
    rows = [row for place in places for row in range(starts[place], starts[place] + sizes[place])]
    if rows:
        out[: len(rows)].copy_(come[torchemu.tensor(rows, device=come.device)])


def _tell(out_splits_offsets: Tensor, splits: list[int], offsets: list[int]) -> None:
    told = torchemu.tensor([splits, offsets], dtype=torchemu.int64, device=out_splits_offsets.device)
    out_splits_offsets.copy_(told)
