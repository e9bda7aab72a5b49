"""torch.ops.symm_mem: collectives on symmetric memory. Groups are given by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torchemu.frontends.numpy as torch
from torchemu.bridge.calls import Call
from torchemu.frontends.numpy._tensor import Tensor
from torchemu.frontends.numpy._tensor.dispatch import not_implemented
from torchemu.frontends.numpy.distributed._process_group import find_by_name
from torchemu.frontends.numpy.distributed._symmetric_memory._handle import _SymmetricMemory
from torchemu.frontends.numpy.distributed._symmetric_memory._handle import rendezvous as _rendezvous
from torchemu.frontends.numpy.distributed._symmetric_memory._peers import is_symmetric

_FLOATS = ("float16", "bfloat16", "float32")


def _checked(operation: str, t: Tensor, reduce_op: str, group_name: str) -> _SymmetricMemory:
    """The handle of an operation's symmetric tensor.

    Raises:
        RuntimeError: the tensor is not symmetric, or not contiguous; the op is not sum.
        NotImplementedError: the dtype is not of the floats that the operation is for.
    """
    if not t.is_contiguous():
        raise RuntimeError(f"{operation}: input must be contiguous.")
    if reduce_op != "sum":
        raise RuntimeError(f"{operation}: only sum is supported for now.")
    if not is_symmetric(t):
        raise RuntimeError(f"{operation}: input must be allocated with empty_strided_p2p().")
    if t.dtype.name not in _FLOATS:
        raise not_implemented(operation, t.dtype)
    return _rendezvous(t, find_by_name(group_name))


def _check_output(operation: str, given: Tensor, out: Tensor) -> None:
    if not out.is_contiguous():
        raise RuntimeError(f"{operation}: output must be contiguous.")
    if out.shape != given.shape:
        raise RuntimeError(
            f"{operation}: input/output size mismatch, input.sizes(): {list(given.shape)}, "
            f"output.sizes(): {list(out.shape)}"
        )


def _all_reduce_by(algorithm: str) -> Call:
    return Call.of(f"{algorithm}_all_reduce", "all_reduce", "sum", algorithm=algorithm)


def one_shot_all_reduce(input: Tensor, reduce_op: str, group_name: str) -> Tensor:  # noqa: A002 (PyTorch's names)
    """The sum of all ranks' tensors, each of which every rank reads."""
    return one_shot_all_reduce_out(input, reduce_op, group_name, torch.empty_like(input))


def one_shot_all_reduce_out(input: Tensor, reduce_op: str, group_name: str, out: Tensor) -> Tensor:  # noqa: A002
    """The same, into a tensor."""
    hdl = _checked("one_shot_all_reduce", input, reduce_op, group_name)
    _check_output("one_shot_all_reduce", input, out)
    hdl.collective(_all_reduce_by("one_shot"), out, input)
    return out


def two_shot_all_reduce_(input: Tensor, reduce_op: str, group_name: str) -> Tensor:  # noqa: A002
    """Replaces every rank's tensor by the sum: each rank adds up a part, and then all read all parts."""
    return two_shot_all_reduce_out(input, reduce_op, group_name, input)


def two_shot_all_reduce_out(input: Tensor, reduce_op: str, group_name: str, output: Tensor) -> Tensor:  # noqa: A002
    """The same, into a tensor."""
    hdl = _checked("two_shot_all_reduce", input, reduce_op, group_name)
    _check_output("two_shot_all_reduce", input, output)
    hdl.collective(_all_reduce_by("two_shot"), output, input)
    return output


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "one_shot_all_reduce": one_shot_all_reduce,
    "one_shot_all_reduce_out": one_shot_all_reduce_out,
    "two_shot_all_reduce_": two_shot_all_reduce_,
    "two_shot_all_reduce_out": two_shot_all_reduce_out,
}
"""By the names that they have in torch.ops.symm_mem."""
