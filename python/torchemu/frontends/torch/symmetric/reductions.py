"""Operators of `torch.ops.symm_mem` that are collectives of a certain algorithm: shots over links, or in the switch."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from torchemu.bridge.calls import Call
from torchemu.frontends.torch.groups import AhbmGroup
from torchemu.frontends.torch.membership import shared
from torchemu.frontends.torch.symmetric import backends
from torchemu.frontends.torch.symmetric.memory import group_of, is_symmetric
from torchemu.frontends.torch.works import AhbmWork
from torchemu.runtime.rank_local import RankLocal

_FLOATS = (torch.float16, torch.bfloat16, torch.float32)
_ONE_SHOT, _TWO_SHOT, _SWITCH = "one_shot", "two_shot", "nvls"
_NO_SWITCH = (
    "The ranks have no switch in common that multicasts and adds up (system.switch.in_network in topology.yaml), which "
    "has_multicast_support and multicast_ptr say"
)
_LEAST_ALIGNMENT = 4  # bytes of a load of all ranks' memory

_groups: RankLocal[dict[object, AhbmGroup]] = RankLocal(dict)  # for collectives, by the memberships of the programs'


def group_for_collectives(name: str) -> AhbmGroup:
    """Returns the group on which they have an order of their own, beside the program's collectives."""
    groups, membership = _groups.get(), group_of(name).membership
    if membership.key not in groups:
        own = shared(f"symmetric memory of group {membership.name}", membership.members, are_world_ranks=True)
        groups[membership.key] = AhbmGroup(None, group_of(name).rank(), own, "nccl")
    return groups[membership.key]


def one_shot_all_reduce(given: torch.Tensor, reduce_op: str, group_name: str) -> torch.Tensor:
    """Returns the sum of the ranks' tensors, each of which gets all."""
    return one_shot_all_reduce_out(given, reduce_op, group_name, torch.empty_like(given))


def one_shot_all_reduce_out(given: torch.Tensor, reduce_op: str, group_name: str, out: torch.Tensor) -> torch.Tensor:
    """Writes the sum of the ranks' tensors, each of which gets all."""
    return _all_reduce("one_shot_all_reduce", _ONE_SHOT, given, reduce_op, group_name, out)


def one_shot_all_reduce_copy(
    buffer: torch.Tensor, local: torch.Tensor, reduce_op: str, group_name: str
) -> torch.Tensor:
    """Returns the sum of the ranks' tensors, which are copied to symmetric memory first."""
    return one_shot_all_reduce_copy_out(buffer, local, reduce_op, group_name, torch.empty_like(local))


def one_shot_all_reduce_copy_out(
    buffer: torch.Tensor, local: torch.Tensor, reduce_op: str, group_name: str, out: torch.Tensor
) -> torch.Tensor:
    """Writes the sum of the ranks' tensors, which are copied to symmetric memory first."""
    function = "one_shot_all_reduce"
    if not local.is_contiguous():
        raise RuntimeError(f"{function}: local input must be contiguous.")
    if local.numel() > buffer.numel() or local.dtype != buffer.dtype:
        raise RuntimeError(
            f"{function}: local input size must be smaller than symm buffer size, and of its dtype: {local.numel()} of "
            f"{local.dtype} and {buffer.numel()} of {buffer.dtype}"
        )
    _check(function, buffer, reduce_op, buffer)
    used = buffer.view(-1)[: local.numel()].view(local.shape)
    used.copy_(local)
    return _all_reduce(function, _ONE_SHOT, used, reduce_op, group_name, out)


def two_shot_all_reduce(given: torch.Tensor, reduce_op: str, group_name: str) -> torch.Tensor:
    """Replaces the ranks' tensors by their sum, of which each rank makes a part."""
    return _all_reduce("two_shot_all_reduce", _TWO_SHOT, given, reduce_op, group_name, given)


def two_shot_all_reduce_out(given: torch.Tensor, reduce_op: str, group_name: str, out: torch.Tensor) -> torch.Tensor:
    """Writes the sum of the ranks' tensors, of which each rank makes a part."""
    return _all_reduce("two_shot_all_reduce", _TWO_SHOT, given, reduce_op, group_name, out)


def multimem_all_reduce(given: torch.Tensor, reduce_op: str, group_name: str) -> torch.Tensor:
    """Replaces the ranks' tensors by their sum, which the switch makes."""
    function = "multimem_all_reduce_"
    _check(function, given, reduce_op, given)
    _check_switch(function, "multicast support is required", given, group_name)
    return _all_reduce(function, _SWITCH, given, reduce_op, group_name, given)


def multimem_one_shot_all_reduce(given: torch.Tensor, reduce_op: str, group_name: str) -> torch.Tensor:
    """Returns the sum of the ranks' tensors, which the switch makes."""
    return multimem_one_shot_all_reduce_out(given, reduce_op, group_name, torch.empty_like(given))


def multimem_one_shot_all_reduce_out(
    given: torch.Tensor, reduce_op: str, group_name: str, out: torch.Tensor
) -> torch.Tensor:
    """Writes the sum of the ranks' tensors, which the switch makes."""
    function = "multimem_one_shot_all_reduce"
    _check(function, given, reduce_op, out)
    _check_switch(function, "requires multicast support", given, group_name)
    return _all_reduce(function, _SWITCH, given, reduce_op, group_name, out)


def multimem_one_shot_reduce_out(
    given: torch.Tensor, reduce_op: str, root: int, group_name: str, out: torch.Tensor
) -> torch.Tensor:
    """Writes the sum of the ranks' tensors on the root, which the switch makes."""
    function = "multimem_one_shot_reduce"
    group = group_for_collectives(group_name)
    _check(function, given, reduce_op, out)
    _check_root(function, root, group)
    _check_switch(function, "requires multicast support", given, group_name)
    _reduce(function, group, root, given, out).wait()
    return out


def _check_root(function: str, root: int, group: AhbmGroup) -> None:
    if not 0 <= root < group.size():
        raise RuntimeError(f"{function}: root must be a rank of the group, 0 to {group.size() - 1}, not {root}")


def multimem_all_gather_out(given: torch.Tensor, group_name: str, out: torch.Tensor) -> torch.Tensor:
    """Writes the ranks' tensors one after another on all, by the switch."""
    function, group = "multimem_all_gather_out", group_for_collectives(group_name)
    if not is_symmetric(out):
        raise RuntimeError(f"{function}: output must be allocated with empty_strided_p2p().")
    if not backends.has_multicast(group.membership.members):
        raise RuntimeError(f"{function}: output must have multicast support. {_NO_SWITCH}")
    for what, tensor in (("input", given), ("output", out)):
        if not tensor.is_contiguous():
            raise RuntimeError(f"{function}: {what} must be contiguous.")
    if given.dim() != out.dim():
        raise RuntimeError(f"{function}: input/output dimension mismatch.")
    if out.shape[0] != given.shape[0] * group.size():
        raise RuntimeError(
            f"{function}: out.sizes()[0] must be equal to input.sizes[0] * world_size. (out.sizes():{list(out.shape)}, "
            f"input.sizes(): {list(given.shape)}, world_size: {group.size()})"
        )
    if out.shape[1:] != given.shape[1:]:
        raise RuntimeError(f"{function}: all non-0th dimension of input and output must match.")
    _check_alignment(function, out)
    call = Call.of(function, "all_gather", algorithm=_SWITCH)
    group._issue(call, [out], [given], [out]).wait()
    return out


def reduce_scatter_out(
    given: torch.Tensor, group_name: str, split_last_dim: bool, output: torch.Tensor
) -> torch.Tensor:
    """Writes this rank's part of the sum of the ranks' tensors, of the elements or of the last dimension's."""
    function, group = "reduce_scatter", group_for_collectives(group_name)
    _check_parts(function, given, split_last_dim, output, group.size())
    parts = list(given.chunk(group.size(), -1)) if given.numel() else []
    if not parts:
        return output
    call = Call.of("reduce_scatter_out", "reduce_scatter", "sum", algorithm="direct")
    given_parts = [part.contiguous() for part in parts]
    group._issue(call, [output], given_parts, [output]).wait()
    return output


def _check_parts(function: str, given: torch.Tensor, split_last_dim: bool, output: torch.Tensor, world: int) -> None:
    for what, tensor in (("input", given), ("output", output)):
        if not tensor.is_contiguous():
            raise RuntimeError(f"{function}: {what} must be contiguous.")
    if not is_symmetric(given):
        raise RuntimeError(f"{function}: input must be allocated with empty_strided_p2p().")
    _check_alignment(function, given)
    if not split_last_dim and (given.dim() != 1 or output.dim() != 1):
        raise RuntimeError(f"{function} expected 1D input and output, not {given.dim()}D and {output.dim()}D")
    if given.dim() != output.dim() or given.shape[:-1] != output.shape[:-1]:
        raise RuntimeError(
            f"{function} expected input and output to have same sizes except in the last dimension: "
            f"{list(given.shape)} and {list(output.shape)}"
        )
    if given.shape[-1] % world or output.shape[-1] != given.shape[-1] // world:
        raise RuntimeError(
            f"{function} expected output last dim size to be input last dim size / world_size: {output.shape[-1]}, of "
            f"{given.shape[-1]} for {world} ranks"
        )
    _check_float(function, given)


def tile_reduce(given: torch.Tensor, out: torch.Tensor, root: int, group_name: str, reduce_op: str = "sum") -> None:
    """Writes the sum of the ranks' tiles on the root, which the switch makes."""
    multi_root_tile_reduce([given], out, [root], group_name, reduce_op, "tile_reduce")


def multi_root_tile_reduce(
    tiles: Sequence[torch.Tensor],
    out: torch.Tensor,
    roots: Sequence[int],
    group_name: str,
    reduce_op: str = "sum",
    function: str = "multi_root_tile_reduce",
) -> None:
    """Writes the sums of the ranks' tiles, which the switch makes, each on a root of its own."""
    group = group_for_collectives(group_name)
    _check_tiles(function, tiles, out, reduce_op)
    if len(tiles) != len(roots) or len({*roots}) != len(roots):
        raise RuntimeError(
            f"{function}: each of in_tiles has a root of its own: {len(tiles)} tiles and the roots {list(roots)}"
        )
    for root in roots:
        _check_root(function, root, group)
    for tile in tiles:
        _check_switch(function, "requires multicast support", tile, group_name)
    own = torch.empty(out.shape, dtype=out.dtype, device=out.device)  # tiles have gaps between their rows
    works = [_reduce(function, group, root, t.contiguous(), own) for t, root in zip(tiles, roots, strict=True)]
    for work in works:
        work.wait()
    if group.rank() in roots:
        out.copy_(own)


def _check_tiles(function: str, tiles: Sequence[torch.Tensor], out: torch.Tensor, reduce_op: str) -> None:
    if reduce_op != "sum":
        raise RuntimeError(f"{function}: only sum is supported for now, not {reduce_op!r}")
    if not is_symmetric(out):
        raise RuntimeError(f"{function}: out_tile must be allocated with empty_strided_p2p().")
    for tile in tiles:
        if tile.dim() != 2 or tile.shape != out.shape or tile.dtype != out.dtype:
            raise RuntimeError(
                f"{function}: tiles must be 2D, and of one shape and dtype: in {list(tile.shape)} of {tile.dtype}, out "
                f"{list(out.shape)} of {out.dtype}"
            )
        _check_float(function, tile)


def _reduce(function: str, group: AhbmGroup, root: int, given: torch.Tensor, out: torch.Tensor) -> AhbmWork:
    """Issues a reduction to a root by the switch. Returns its work."""
    call = Call.of(function, "reduce", "sum", root, algorithm=_SWITCH)
    if group.rank() != root:
        return group._issue(call, [], [given], [given])
    out.copy_(given)
    return group._issue(call, [out], None, [out])


def _all_reduce(
    function: str, algorithm: str, given: torch.Tensor, reduce_op: str, group_name: str, out: torch.Tensor
) -> torch.Tensor:
    """Reduces the ranks' symmetric tensors by an algorithm, on the current stream."""
    _check(function, given, reduce_op, out)
    if given.numel():
        call = Call.of(function, "all_reduce", "sum", algorithm=algorithm)
        group_for_collectives(group_name)._issue(call, [out], [given], [out]).wait()
    return out


def _check(function: str, given: torch.Tensor, reduce_op: str, out: torch.Tensor) -> None:
    """Checks the arguments of a reduction.

    Raises:
        RuntimeError: as PyTorch: the tensor is not symmetric, or not contiguous; the operation is not sum; out is of
            another shape.
        NotImplementedError: the dtype is not one of those that the operation is for.
    """
    if not given.is_contiguous():
        raise RuntimeError(f"{function}: input must be contiguous.")
    if not out.is_contiguous():
        raise RuntimeError(f"{function}: output must be contiguous.")
    if out.shape != given.shape:
        raise RuntimeError(
            f"{function}: input/output size mismatch, input.sizes(): {list(given.shape)}, "
            f"output.sizes(): {list(out.shape)}"
        )
    if reduce_op != "sum":
        raise RuntimeError(f"{function}: only sum is supported for now.")
    if not is_symmetric(given) and given.numel():
        raise RuntimeError(f"{function}: input must be allocated with empty_strided_p2p().")
    _check_float(function, given)


def _check_float(function: str, given: torch.Tensor) -> None:
    if given.dtype not in _FLOATS:
        raise NotImplementedError(f'"{function}" not implemented for {str(given.dtype).partition(".")[2]!r}')


def _check_switch(function: str, without: str, given: torch.Tensor, group_name: str) -> None:
    """Makes sure that the group's switch multicasts and adds up, and that it gets words.

    Raises:
        RuntimeError: as PyTorch.
    """
    if not is_symmetric(given):
        raise RuntimeError(f"{function}: input must be allocated with empty_strided_p2p().")
    if not backends.has_multicast(group_of(group_name).membership.members):
        raise RuntimeError(f"{function}: {without}. {_NO_SWITCH}")
    _check_alignment(function, given)


def _check_alignment(function: str, given: torch.Tensor) -> None:
    """Makes sure that a tensor begins and ends at a multiple of a word.

    Raises:
        RuntimeError: as PyTorch.
    """
    least, kind = max(_LEAST_ALIGNMENT, given.itemsize), str(given.dtype).partition(".")[2]
    for what, nbytes in (("ptr + offset", given.storage_offset() * given.itemsize), ("size", given.nbytes)):
        if nbytes % least:
            raise RuntimeError(f"{function}<{kind}>: input {what} must be at least {least}-byte aligned.")
