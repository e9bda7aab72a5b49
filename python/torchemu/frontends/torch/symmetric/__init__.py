"""Symmetric memory of the installed PyTorch: tensors of a group's ranks that each of them reads and writes.

Here are the operations of ``torch.ops.symm_mem``, and what a run replaces in PyTorch.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

import torch
from torch.distributed import _symmetric_memory as symmetric

from torchemu.bridge.calls import Call
from torchemu.frontends.torch.groups import AhbmGroup
from torchemu.frontends.torch.membership import shared
from torchemu.frontends.torch.session import Session
from torchemu.frontends.torch.symmetric.memory import SymmetricMemory, group_of, is_symmetric
from torchemu.runtime.rank_local import RankLocal, RankTable

_FLOATS = (torch.float16, torch.bfloat16, torch.float32)

_groups: RankLocal[dict[object, AhbmGroup]] = RankLocal(dict)  # for collectives, by the memberships of the programs'


def _all_reduce(
    algorithm: str, given: torch.Tensor, reduce_op: str, group_name: str, out: torch.Tensor
) -> torch.Tensor:
    """Reduces the ranks' symmetric tensors by an algorithm, on the current stream.

    Raises:
        RuntimeError: as PyTorch: the tensor is not symmetric, or not contiguous; the operation is not sum; out is of
            another shape.
        NotImplementedError: the dtype is not one of those that the operation is for.
    """
    operation = f"{algorithm}_all_reduce"
    if not given.is_contiguous():
        raise RuntimeError(f"{operation}: input must be contiguous.")
    if not out.is_contiguous():
        raise RuntimeError(f"{operation}: output must be contiguous.")
    if out.shape != given.shape:
        raise RuntimeError(
            f"{operation}: input/output size mismatch, input.sizes(): {list(given.shape)}, "
            f"output.sizes(): {list(out.shape)}"
        )
    if reduce_op != "sum":
        raise RuntimeError(f"{operation}: only sum is supported for now.")
    if not is_symmetric(given):
        raise RuntimeError(f"{operation}: input must be allocated with empty_strided_p2p().")
    if given.dtype not in _FLOATS:
        raise NotImplementedError(f'"{operation}" not implemented for {str(given.dtype).partition(".")[2]!r}')
    call = Call.of(operation, "all_reduce", "sum", algorithm=algorithm)
    _group_for_collectives(group_name)._issue(call, [out], [given], [out]).wait()
    return out


def _group_for_collectives(name: str) -> AhbmGroup:
    """Returns the group on which they have an order of their own, beside the program's collectives."""
    groups, membership = _groups.get(), group_of(name).membership
    if membership.key not in groups:
        own = shared(f"symmetric memory of group {membership.name}", membership.members, are_world_ranks=True)
        groups[membership.key] = AhbmGroup(None, group_of(name).rank(), own, "nccl")
    return groups[membership.key]


def _all_gather(given: torch.Tensor, group_name: str) -> torch.Tensor:
    """Gathers tensors by copies from the peers' memory, into which those go first that are not symmetric."""
    if not is_symmetric(given):
        memory = symmetric.get_symm_mem_workspace(group_name, given.nbytes)
        given = memory.get_buffer(memory.rank, given.shape, given.dtype).copy_(given)
    return symmetric._low_contention_all_gather(given, group_name)


def _reduce_scatter(given: torch.Tensor, reduce_op: str, group_name: str) -> torch.Tensor:
    """Sums up, or takes the mean of, what ranks have for this one, after copies between the peers' memory."""
    if is_symmetric(given):
        return symmetric._low_contention_reduce_scatter(given, reduce_op, group_name)
    workspace = symmetric.get_symm_mem_workspace(group_name, given.nbytes)
    return symmetric._low_contention_reduce_scatter_with_workspace(given, reduce_op, workspace)


def _multicast(name: str) -> Any:
    def refuse(*_: Any, **__: Any) -> NoReturn:
        raise RuntimeError(f"symm_mem::{name}: simulated devices have no multicast (has_multicast_support says so)")

    return refuse


_KERNELS: dict[str, Callable[..., Any]] = {
    "one_shot_all_reduce": lambda t, op, group: _all_reduce("one_shot", t, op, group, torch.empty_like(t)),
    "one_shot_all_reduce_out": lambda t, op, group, out: _all_reduce("one_shot", t, op, group, out),
    "two_shot_all_reduce_": lambda t, op, group: _all_reduce("two_shot", t, op, group, t),
    "two_shot_all_reduce_out": lambda t, op, group, out: _all_reduce("two_shot", t, op, group, out),
    "fused_all_gather_matmul": lambda a, bs, dim, group, return_A=True: symmetric._fused_all_gather_matmul_fallback(  # noqa: N803
        a, bs, dim, group, return_A=return_A
    ),
    "fused_matmul_reduce_scatter": symmetric._fused_matmul_reduce_scatter_fallback,
    "_low_contention_all_gather": _all_gather,
    "_low_contention_reduce_scatter": _reduce_scatter,
    **{name: _multicast(name) for name in ("multimem_all_reduce_", "multimem_one_shot_all_reduce")},
}


def install(run: Session) -> None:
    """Gives ranks symmetric memory, until the run ends."""
    run.replace(symmetric, "_SymmetricMemory", SymmetricMemory)
    run.replace(torch._C._distributed_c10d, "_SymmetricMemory", SymmetricMemory)
    for name in ("_group_name_to_workspace_tensor", "_backend_streams", "_symm_mem_pools"):
        run.replace(symmetric, name, RankTable())
    run.replace(symmetric, "_should_use_implicit_mempool", lambda: False)
    if not _library:
        _library.append(torch.library.Library("symm_mem", "IMPL"))
        for name, kernel in _KERNELS.items():
            _library[0].impl(name, kernel, "CPU")


_library: list[Any] = []  # PyTorch forgets kernels whose library is gone
