"""Functional collectives that PyTorch's kernels cannot issue here: of tensors without elements, for which they make a
result and send nothing, and one for which they want a backend in C++."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.distributed as dist
from torch._C._distributed_c10d import _allow_inflight_collective_as_graph_input, _register_work
from torch.distributed import distributed_c10d as c10d

Works = Callable[..., Any]

_OPS = {"sum": "SUM", "avg": "AVG", "product": "PRODUCT", "min": "MIN", "max": "MAX", "band": "BAND", "bor": "BOR",
        "bxor": "BXOR"}  # fmt: skip
"""Reduce ops by the words that functional collectives have for them."""


def communicated(func: Any, name: str, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """Issues a functional collective, and returns its results, which wait_tensor waits for.

    Args:
        func: the overload.
        name: its name, without the namespace.
        args, kwargs: those of the call; its tensors have no elements.

    Raises:
        RuntimeError: nothing is known of a collective of that name.
    """
    if name == "wait_tensor":
        return _waited(args[0])
    if name == "_wrap_tensor_autograd":
        return func(*args, **kwargs)
    issue = _ISSUES.get(name)
    if issue is None:
        raise RuntimeError(f"{func}: a run without data does not know this collective")
    outs = args[0] if name.endswith("_") else kwargs["out"] if "out" in kwargs else func(*args, **kwargs)
    listed = outs if isinstance(outs, list) else [outs]
    ins = list(args[0]) if isinstance(args[0], (list, tuple)) else [args[0]]
    work = issue(c10d._resolve_process_group(args[-1]), listed, [t.contiguous() for t in ins], args[1:-1])
    for tensor in listed:
        tensor.untyped_storage()._work = work
    return outs


def gathered_into(given: torch.Tensor, group_size: int, group_name: str, *, out: torch.Tensor) -> torch.Tensor:
    """Issues all_gather_into_tensor_out, as PyTorch's C++ would by the group's backend in C++, of which there is none.
    Returns the given tensor for the result, which wait_tensor waits for."""
    work = c10d._resolve_process_group(group_name)._allgather_base(out, given.contiguous())
    if not _allow_inflight_collective_as_graph_input():  # else each work is known already
        _register_work(out, work)
    return out


def _waited(tensor: torch.Tensor) -> torch.Tensor:
    """Waits for the collective that writes a tensor."""
    storage: Any = tensor.untyped_storage()
    work = getattr(storage, "_work", None)
    if work is not None:
        storage._work = None
        work.wait()
    return tensor


def _op(word: str) -> Any:
    return getattr(dist.ReduceOp, _OPS[word.lower()])


def _all_reduce(group: Any, outs: list[Any], ins: list[Any], about: Sequence[Any]) -> Any:
    return group.allreduce(outs, _op(about[0]))


def _all_reduce_coalesced(group: Any, outs: list[Any], ins: list[Any], about: Sequence[Any]) -> Any:
    return group.allreduce_coalesced(outs, _op(about[0]))


def _all_gather(group: Any, outs: list[Any], ins: list[Any], about: Sequence[Any]) -> Any:
    return group._allgather_base(outs[0], ins[0])


def _all_gather_coalesced(group: Any, outs: list[Any], ins: list[Any], about: Sequence[Any]) -> Any:
    return group.allgather_into_tensor_coalesced(outs, ins)


def _reduce_scatter(group: Any, outs: list[Any], ins: list[Any], about: Sequence[Any]) -> Any:
    return group._reduce_scatter_base(outs[0], ins[0], _op(about[0]))


def _reduce_scatter_coalesced(group: Any, outs: list[Any], ins: list[Any], about: Sequence[Any]) -> Any:
    return group.reduce_scatter_tensor_coalesced(outs, ins, _op(about[0]))


def _all_to_all(group: Any, outs: list[Any], ins: list[Any], about: Sequence[Any]) -> Any:
    return group.alltoall_base(outs[0], ins[0], list(about[0]), list(about[1]))


def _broadcast(group: Any, outs: list[Any], ins: list[Any], about: Sequence[Any]) -> Any:
    return group.broadcast(outs, about[0])


_ISSUES: dict[str, Works] = {
    "all_reduce": _all_reduce, "all_reduce_": _all_reduce,
    "all_reduce_coalesced": _all_reduce_coalesced, "all_reduce_coalesced_": _all_reduce_coalesced,
    "all_gather_into_tensor": _all_gather, "all_gather_into_tensor_out": _all_gather,
    "all_gather_into_tensor_coalesced": _all_gather_coalesced,
    "reduce_scatter_tensor": _reduce_scatter, "reduce_scatter_tensor_out": _reduce_scatter,
    "reduce_scatter_tensor_coalesced": _reduce_scatter_coalesced,
    "all_to_all_single": _all_to_all, "broadcast": _broadcast, "broadcast_": _broadcast,
}  # fmt: skip
