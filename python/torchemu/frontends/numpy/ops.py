"""torch.ops: the collectives that other libraries call by the names of PyTorch's operators."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

from torchemu.frontends.numpy._tensor import Tensor
from torchemu.frontends.numpy.distributed import _functional_collectives as functional
from torchemu.frontends.numpy.distributed import distributed_c10d as c10d
from torchemu.frontends.numpy.distributed._symmetric_memory import _ops as symmetric


class _Operator:
    """A function that has itself as its default overload."""

    def __init__(self, library: str, name: str, function: Callable[..., Any]) -> None:
        self._name, self._function = f"{library}.{name}", function
        self.__doc__ = function.__doc__

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._function(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<OpOverloadPacket(op='{self._name}')>"

    @property
    def default(self) -> _Operator:
        """Itself."""
        return self


def _all_reduce_in_place(input: Tensor, reduce_op: str, group_name: str) -> Tensor:  # noqa: A002
    """Replaces the tensor by the reduction over all ranks; the current stream waits."""
    c10d.all_reduce(input, functional._reduction(reduce_op), functional._group(group_name, ""))
    return input


def _all_reduce_coalesced_in_place(inputs: Sequence[Tensor], reduce_op: str, group_name: str) -> list[Tensor]:
    """all_reduce_ of several tensors."""
    return [_all_reduce_in_place(t, reduce_op, group_name) for t in inputs]


def _all_gather(input: Tensor, group_size: int, group_name: str) -> Tensor:  # noqa: A002
    """All ranks' tensors, one after another."""
    return functional.all_gather_tensor(input, 0, group_name)


def _all_gather_out(input: Tensor, group_size: int, group_name: str, *, out: Tensor) -> Tensor:  # noqa: A002
    """Fills a tensor with all ranks' ones; the current stream waits."""
    c10d.all_gather_into_tensor(out, input, functional._group(group_name, ""))
    return out


def _all_gather_coalesced(inputs: Sequence[Tensor], group_size: int, group_name: str) -> list[Tensor]:
    """all_gather_into_tensor of several tensors."""
    return functional.all_gather_into_tensor_coalesced(inputs, group_name)


def _reduce_scatter(input: Tensor, reduce_op: str, group_size: int, group_name: str) -> Tensor:  # noqa: A002
    """This rank's part of the reduction over all ranks."""
    return functional.reduce_scatter_tensor(input, reduce_op, 0, group_name)


def _reduce_scatter_coalesced(
    inputs: Sequence[Tensor], reduce_op: str, group_size: int, group_name: str
) -> list[Tensor]:
    """reduce_scatter_tensor of several tensors."""
    return functional.reduce_scatter_tensor_coalesced(inputs, reduce_op, [0] * len(inputs), group_name)


def _broadcast_in_place(input: Tensor, src: int, group_name: str) -> Tensor:  # noqa: A002
    """Makes the tensor that of a group rank; the current stream waits."""
    c10d.broadcast(input, group=functional._group(group_name, ""), group_src=src)
    return input


_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "all_reduce": functional.all_reduce,
    "all_reduce_": _all_reduce_in_place,
    "all_reduce_coalesced": functional.all_reduce_coalesced,
    "all_reduce_coalesced_": _all_reduce_coalesced_in_place,
    "all_gather_into_tensor": _all_gather,
    "all_gather_into_tensor_out": _all_gather_out,
    "all_gather_into_tensor_coalesced": _all_gather_coalesced,
    "reduce_scatter_tensor": _reduce_scatter,
    "reduce_scatter_tensor_coalesced": _reduce_scatter_coalesced,
    "all_to_all_single": functional.all_to_all_single,
    "broadcast": functional.broadcast,
    "broadcast_": _broadcast_in_place,
    "wait_tensor": functional.wait_tensor,
}


def _library(name: str, functions: dict[str, Callable[..., Any]]) -> SimpleNamespace:
    return SimpleNamespace(**{function: _Operator(name, function, call) for function, call in functions.items()})


_c10d_functional = _library("_c10d_functional", _FUNCTIONS)
"""``torch.ops._c10d_functional``; groups are given by name."""

symm_mem = _library("symm_mem", symmetric.FUNCTIONS)
"""``torch.ops.symm_mem``; groups are given by name."""
