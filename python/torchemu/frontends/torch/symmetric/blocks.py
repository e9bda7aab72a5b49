"""Operators of `torch.ops.symm_mem` that newer PyTorch has: blocks of matrices are exchanged or added up."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch.distributed import _symmetric_memory as symmetric

from torchemu.bridge.calls import Call
from torchemu.frontends.torch.groups import AhbmGroup
from torchemu.frontends.torch.symmetric import backends, reductions
from torchemu.frontends.torch.symmetric.memory import backend_of


def all_gather_by_switch(given: torch.Tensor, group_name: str) -> torch.Tensor:
    """Returns the ranks' tensors, one after another, in new symmetric memory, to which the switch copies them."""
    world = reductions.group_for_collectives(group_name).size()
    shape = (given.shape[0] * world, *given.shape[1:]) if given.dim() else (world,)
    out = symmetric.empty(shape, dtype=given.dtype, device=given.device)
    symmetric.rendezvous(out, group_name)
    return all_gather_by_switch_out(given, group_name, out)


def all_gather_by_switch_out(given: torch.Tensor, group_name: str, out: torch.Tensor) -> torch.Tensor:
    """Writes the ranks' tensors one after another into symmetric memory of all."""
    one = given if given.dim() else given.view(1)
    return reductions.multimem_all_gather_out(one.contiguous(), group_name, out)


def all_to_all(given: torch.Tensor, out: torch.Tensor, scatter_dim: int, gather_dim: int, group_name: str) -> None:
    """Gives each rank a block of the columns, or of the rows, of all: nccl_all_to_all_nd."""
    function, group = "nccl_all_to_all_nd", reductions.group_for_collectives(group_name)
    _check(function, given)
    if (scatter_dim, gather_dim) not in ((1, 0), (0, 1)):
        raise RuntimeError(
            f"{function}: (scatter_dim, gather_dim) must be (1, 0) or (0, 1), not ({scatter_dim}, {gather_dim})"
        )
    world = group.size()
    whole = given if given.dim() == 3 else _parted(function, given, scatter_dim, world)
    if whole.shape[scatter_dim] != world:
        raise RuntimeError(f"{function}: dimension {scatter_dim} of input must have {world} blocks: {[*given.shape]}")
    blocks = [block.contiguous() for block in whole.unbind(scatter_dim)]
    shape = list(blocks[0].shape)
    shape.insert(gather_dim, world)
    if not out.is_contiguous() or out.dtype != given.dtype or out.numel() != given.numel():
        raise RuntimeError(
            f"{function}: out must be contiguous, of {given.dtype} and of the shape {shape}: {out.dtype} {[*out.shape]}"
        )
    got = [torch.empty_like(block) for block in blocks]
    group._issue(Call.of(function, "all_to_all"), got, blocks, got).wait()
    for to, block in zip(out.view(shape).unbind(gather_dim), got, strict=True):
        to.copy_(block)


def _parted(function: str, given: torch.Tensor, dim: int, world: int) -> torch.Tensor:
    """Returns a matrix with a dimension for the ranks, which divide its rows or columns."""
    if given.dim() != 2 or given.shape[dim] % world:
        raise RuntimeError(
            f"{function}: input must have two dimensions, of which {world} ranks divide number {dim} evenly, or three: "
            f"{[*given.shape]}"
        )
    return given.unflatten(dim, (world, given.shape[dim] // world))


def reduce_scatter(
    given: torch.Tensor,
    out: Sequence[torch.Tensor],
    group_name: str,
    dim: int,
    offsets: Sequence[int] | None = None,
    dst_ranks: Sequence[int] | None = None,
    red_op: str = "sum",
) -> None:
    """Adds up blocks of the ranks' matrices, each on a rank of its own: nccl_reduce_scatter_offset.

    Args:
        given: this rank's matrix.
        out: for the sums that are this rank's.
        dim: of the rows, or of the columns.
        offsets: where the blocks end; without, ranks have one each.
        dst_ranks: of the sums; without, ranks take turns.
    """
    function, group = "nccl_reduce_scatter_offset", reductions.group_for_collectives(group_name)
    _check(function, given)
    if red_op != "sum" or given.dim() != 2 or dim not in (0, 1):
        raise RuntimeError(
            f"{function}: it is for sums of matrices by dimension 0 or 1: {red_op!r}, {given.dim()}D, {dim}"
        )
    blocks = _blocks(function, given, dim, offsets, group.size())
    roots = [i % group.size() for i in range(len(blocks))] if dst_ranks is None else list(dst_ranks)
    mine = [number for number, root in enumerate(roots) if root == group.rank()]
    if len(roots) != len(blocks) or not all(0 <= root < group.size() for root in roots):
        raise RuntimeError(
            f"{function}: dst_ranks must be ranks of the group, one for each of {len(blocks)} blocks: {roots}"
        )
    if [block.shape for block in out] != [blocks[number].shape for number in mine]:
        raise RuntimeError(
            f"{function}: out must have the shapes {[[*blocks[number].shape] for number in mine]} of the blocks that "
            f"are this rank's: {[[*block.shape] for block in out]}"
        )
    outs = dict(zip(mine, out, strict=True))
    works = [_sum(function, group, root, b, outs.get(i)) for i, (b, root) in enumerate(zip(blocks, roots, strict=True))]
    for work in works:
        work.wait()


def _sum(
    function: str, group: AhbmGroup, root: int, block: torch.Tensor, out: torch.Tensor | None
) -> reductions.AhbmWork:
    call = Call.of(function, "reduce", "sum", root)
    if out is None:
        return group._issue(call, [], [block], [block])
    return group._issue(call, [out.copy_(block)], None, [out])


def _blocks(
    function: str, given: torch.Tensor, dim: int, offsets: Sequence[int] | None, world: int
) -> list[torch.Tensor]:
    """Returns the blocks that end at the offsets."""
    n = given.shape[dim]
    if offsets is None and n % world:
        raise RuntimeError(f"{function}: {world} ranks do not divide {n} evenly: pass offsets")
    ends = [n // world * (i + 1) for i in range(world)] if offsets is None else list(offsets)
    begins = [0, *ends[:-1]]
    if any(begin > end for begin, end in zip(begins, ends, strict=True)) or ends[-1:] > [n]:
        raise RuntimeError(f"{function}: offsets must not fall, nor be larger than {n}: {ends}")
    return [given.narrow(dim, begin, end - begin).contiguous() for begin, end in zip(begins, ends, strict=True)]


def _check(function: str, given: torch.Tensor) -> None:
    """Makes sure that a tensor is symmetric memory of NCCL's."""
    if backend_of(given) != backends.NCCL:
        raise RuntimeError(
            f"{function}: input must be symmetric memory of the backend NCCL: call symm_mem.set_backend('NCCL') before "
            "symm_mem.empty"
        )
