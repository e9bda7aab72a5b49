"""torch.ops.symm_mem: collectives on symmetric memory. Groups are given by name."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torchemu.frontends.numpy as torch
from torchemu.bridge.calls import Call
from torchemu.frontends.numpy._tensor import Tensor
from torchemu.frontends.numpy._tensor.dispatch import not_implemented
from torchemu.frontends.numpy.distributed import _functional_collectives as functional
from torchemu.frontends.numpy.distributed._process_group import find_by_name
from torchemu.frontends.numpy.distributed._symmetric_memory._exchanges import (
    all_to_all_vdev,
    all_to_all_vdev_2d,
    all_to_all_vdev_2d_offset,
)
from torchemu.frontends.numpy.distributed._symmetric_memory._handle import _SymmetricMemory
from torchemu.frontends.numpy.distributed._symmetric_memory._handle import rendezvous as _rendezvous
from torchemu.frontends.numpy.distributed._symmetric_memory._peers import is_symmetric
from torchemu.unsupported import unsupported_function

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


def one_shot_all_reduce_copy(symm_buffer: Tensor, local_input: Tensor, reduce_op: str, group_name: str) -> Tensor:
    """The same of tensors that are first copied to symmetric memory."""
    return one_shot_all_reduce_copy_out(symm_buffer, local_input, reduce_op, group_name, torch.empty_like(local_input))


def one_shot_all_reduce_copy_out(
    symm_buffer: Tensor, local_input: Tensor, reduce_op: str, group_name: str, out: Tensor
) -> Tensor:
    """The same, into a tensor."""
    operation = "one_shot_all_reduce"
    hdl = _checked(operation, symm_buffer, reduce_op, group_name)
    if not local_input.is_contiguous():
        raise RuntimeError(f"{operation}: local input must be contiguous.")
    if local_input.numel() > symm_buffer.numel():
        raise RuntimeError(f"{operation}: local input size must be smaller than symm buffer size.")
    _check_output(operation, local_input, out)
    given = symm_buffer.view(-1)[: local_input.numel()].view(local_input.shape)
    given.copy_(local_input)
    hdl.collective(_all_reduce_by("one_shot"), out, given)
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


def reduce_scatter_out(input: Tensor, group_name: str, split_last_dim: bool, output: Tensor) -> Tensor:  # noqa: A002
    """Fills a tensor with this rank's part, cut along the first or the last dimension, of the sum."""
    hdl = _checked("reduce_scatter", input, "sum", group_name)
    if output.numel() * hdl.world_size != input.numel():
        raise RuntimeError(
            "Expected output.numel() == input.numel() / symm_mem->get_world_size() to be true, but got false."
        )
    given = functional._for_scatter(input, input.ndim - 1, hdl.world_size) if split_last_dim else input
    hdl.collective(Call.of("reduce_scatter_out", "reduce_scatter", "sum", algorithm="direct"), output, given)
    return output


def _needs_multicast(operation: str, text: str) -> Callable[..., Tensor]:
    """Returns what an operation says without multicast."""

    def refuse(*_: Any, **__: Any) -> Tensor:
        raise RuntimeError(f"{operation}: {text}")

    refuse.__doc__ = f"Raises RuntimeError: {text}"
    return refuse


def tile_reduce(in_tile: Tensor, out_tile: Tensor, root: int, group_name: str, reduce_op: str = "sum") -> None:
    """Puts the sum of all ranks' tiles, which are parts of symmetric tensors, into a rank's tile."""
    hdl = _checked_tile(in_tile, reduce_op, group_name)
    if not 0 <= root < hdl.world_size:
        raise RuntimeError(f"tile_reduce: root must be in [0, world_size), not {root}")
    hdl.reduce_to(root, out_tile, in_tile, reduce_op)


def multi_root_tile_reduce(
    in_tiles: Sequence[Tensor], out_tile: Tensor, roots: Sequence[int], group_name: str, reduce_op: str = "sum"
) -> None:
    """tile_reduce of several tiles, each to a root of its own."""
    if len(in_tiles) != len(roots):
        raise RuntimeError(f"multi_root_tile_reduce: {len(in_tiles)} tiles for {len(roots)} roots")
    for tile, root in zip(in_tiles, roots, strict=True):
        tile_reduce(tile, out_tile, root, group_name, reduce_op)


def _checked_tile(tile: Tensor, reduce_op: str, group_name: str) -> _SymmetricMemory:
    if reduce_op != "sum":
        raise RuntimeError("tile_reduce: only sum is supported for now.")
    if not is_symmetric(tile):
        raise RuntimeError("tile_reduce: input must be allocated with empty_strided_p2p().")
    return _rendezvous(tile, find_by_name(group_name))


def low_contention_all_gather(tensor: Tensor, group_name: str) -> Tensor:
    """All ranks' tensors, one after another along the first dimension: each rank reads the others'."""
    hdl = _symmetric("_low_contention_all_gather", tensor, group_name)
    output = torch.empty(
        (tensor.shape[0] * hdl.world_size, *tensor.shape[1:]), dtype=tensor.dtype, device=tensor.device
    )
    hdl.collective(Call.of("_low_contention_all_gather", "all_gather", algorithm="direct"), output, tensor)
    return output


def low_contention_reduce_scatter(tensor: Tensor, reduce_op: str, group_name: str) -> Tensor:
    """This rank's part, cut along the first dimension, of the sum or the average."""
    operation = "_low_contention_reduce_scatter"
    hdl = _symmetric(operation, tensor, group_name)
    if reduce_op not in ("sum", "avg"):
        raise ValueError(f"reduce_op ({reduce_op}) is not supported")
    rows = tensor.shape[0] // hdl.world_size
    output = torch.empty((rows, *tensor.shape[1:]), dtype=tensor.dtype, device=tensor.device)
    hdl.collective(Call.of(operation, "reduce_scatter", reduce_op, algorithm="direct"), output, tensor)
    return output


def _symmetric(operation: str, t: Tensor, group_name: str) -> _SymmetricMemory:
    if not is_symmetric(t):
        raise RuntimeError(f"{operation}: input must be allocated with empty_strided_p2p().")
    return _rendezvous(t, find_by_name(group_name))


def get_remote_tensors(x: Tensor, group_name: str) -> list[Tensor]:
    """The tensors of all ranks, by group rank."""
    hdl = _symmetric("get_remote_tensors", x, group_name)
    return [hdl.get_remote_tensor(rank, x.shape, x.dtype) for rank in range(hdl.world_size)]


def barrier(hdl: _SymmetricMemory) -> None:
    """The handle's barrier."""
    hdl.barrier()


def rendezvous(tensor: Tensor, group_name: str) -> _SymmetricMemory:
    """The handle of a symmetric tensor."""
    return _rendezvous(tensor, find_by_name(group_name))


def memset32_(input: Tensor, offset: int, val: int, count: int = 1) -> Tensor:  # noqa: A002
    """Writes a value into some elements of a flat tensor of uint32."""
    _check_words("memset32_", input, offset, val)
    if count <= 0:
        raise RuntimeError(f"symm_mem::memset32_: count must be a positive integer (got {count})")
    if offset + count > input.numel():
        raise RuntimeError(
            f"symm_mem::memset32_: offset + count ({offset + count}) exceeded the numel of the input ({input.numel()})"
        )
    input[offset : offset + count].fill_(val)
    return input


def stream_write_value32_(input: Tensor, offset: int, val: int) -> Tensor:  # noqa: A002
    """Writes a value into one element of a flat tensor of uint32."""
    name = "stream_write_value32_"
    _check_words(name, input, offset, val)
    if offset >= input.numel():
        raise RuntimeError(f"symm_mem::{name}: offset ({offset}) exceeded the numel of the input ({input.numel()})")
    input[offset : offset + 1].fill_(val)
    return input


def _check_words(name: str, t: Tensor, offset: int, val: int) -> None:
    if t.ndim != 1 or not t.is_contiguous() or t.dtype.name != "uint32":
        raise RuntimeError(f"symm_mem::{name}: input must be a flat, contiguous uint32 tensor.")
    if offset < 0:
        raise RuntimeError(f"symm_mem::{name}: offset must be greater than or equal to 0 (got {offset})")
    if not 0 <= val < 1 << 32:
        raise RuntimeError(f"symm_mem::{name}: val must be in the range of [0, 4294967295] (uint32_t).")


# -- with products, one after the other


def fused_all_gather_matmul(
    A_shard: Tensor,  # noqa: N803
    Bs: Sequence[Tensor],  # noqa: N803
    gather_dim: int,
    group_name: str,
    *,
    return_A: bool = True,  # noqa: N803
) -> tuple[Tensor | None, list[Tensor]]:
    """All ranks' shards together, and their products with this rank's matrices. They do not overlap here."""
    whole = functional.all_gather_tensor(A_shard, gather_dim, group_name)
    return whole if return_A else None, [whole @ B for B in Bs]


def fused_matmul_reduce_scatter(
    A: Tensor,  # noqa: N803
    B: Tensor,  # noqa: N803
    reduce_op: str,
    scatter_dim: int,
    group_name: str,
) -> Tensor:
    """This rank's part of the reduced product. They do not overlap here."""
    return functional.reduce_scatter_tensor(A @ B, reduce_op, scatter_dim, group_name)


_NVSHMEM = "there is no NVSHMEM on the emulated fabric; use views of peers' memory, and signals"


def _unsupported(name: str, instead: str) -> Callable[..., Any]:
    return unsupported_function(f"torch.ops.symm_mem.{name}", instead)


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "one_shot_all_reduce": one_shot_all_reduce,
    "one_shot_all_reduce_out": one_shot_all_reduce_out,
    "one_shot_all_reduce_copy": one_shot_all_reduce_copy,
    "one_shot_all_reduce_copy_out": one_shot_all_reduce_copy_out,
    "two_shot_all_reduce_": two_shot_all_reduce_,
    "two_shot_all_reduce_out": two_shot_all_reduce_out,
    "reduce_scatter_out": reduce_scatter_out,
    "multimem_all_reduce_": _needs_multicast("multimem_all_reduce_", "multicast support is required."),
    "multimem_one_shot_all_reduce": _needs_multicast("multimem_one_shot_reduce", "requires multicast support."),
    "multimem_one_shot_all_reduce_out": _needs_multicast("multimem_one_shot_reduce", "requires multicast support."),
    "multimem_one_shot_reduce_out": _needs_multicast("multimem_one_shot_reduce", "requires multicast support."),
    "multimem_all_gather_out": _needs_multicast("multimem_all_gather_out", "output must have multicast support."),
    "tile_reduce": tile_reduce,
    "multi_root_tile_reduce": multi_root_tile_reduce,
    "_low_contention_all_gather": low_contention_all_gather,
    "_low_contention_reduce_scatter": low_contention_reduce_scatter,
    "get_remote_tensors": get_remote_tensors,
    "_barrier": barrier,
    "_rendezvous": rendezvous,
    "memset32_": memset32_,
    "stream_write_value32_": stream_write_value32_,
    "fused_all_gather_matmul": fused_all_gather_matmul,
    "fused_matmul_reduce_scatter": fused_matmul_reduce_scatter,
    "all_to_all_vdev": all_to_all_vdev,
    "all_to_all_vdev_2d": all_to_all_vdev_2d,
    "all_to_all_vdev_2d_offset": all_to_all_vdev_2d_offset,
    **{
        name: _unsupported(name, "scale the matrices and use the one without scaled")
        for name in ("fused_all_gather_scaled_matmul", "fused_scaled_matmul_reduce_scatter")
    },
    **{
        name: _unsupported(name, _NVSHMEM)
        for name in (
            "nvshmem_all_to_all",
            "nvshmem_broadcast",
            "nvshmem_get",
            "nvshmem_put",
            "nvshmem_put_with_signal",
            "nvshmem_wait_for_signal",
        )
    },
}
"""By the names that they have in torch.ops.symm_mem."""
