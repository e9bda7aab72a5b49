"""Symmetric memory of the installed PyTorch: tensors of a group's ranks that each of them reads and writes.

Here is which function stands for which operation of ``torch.ops.symm_mem``, and what a run replaces in PyTorch.
"""

from __future__ import annotations

import functools
import sys
import types
from collections.abc import Callable
from typing import Any, NoReturn

import torch
from torch.distributed import _symmetric_memory as symmetric

from torchemu.frontends.torch.session import Session
from torchemu.frontends.torch.symmetric import backends, blocks, exchanges, one_sided, reductions
from torchemu.frontends.torch.symmetric.memory import SymmetricMemory, is_symmetric
from torchemu.runtime.rank_local import RankTable


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


def _remote_tensors(local: torch.Tensor, group_name: str) -> list[torch.Tensor]:
    """Returns the ranks' tensors, as this rank reaches them."""
    handle = symmetric.rendezvous(local, group_name)
    return [handle.get_remote_tensor(peer, local.size(), local.dtype) for peer in range(handle.world_size)]


def _by_views(function: Any) -> Any:
    """Makes a function of PyTorch's take, for every backend, its way for CUDA's, by views of the peers' memory: the
    others give the handle to the dispatcher, which does not take it."""
    known = {**vars(symmetric), "get_backend": lambda device: backends.CUDA}
    made = types.FunctionType(function.__code__, known, function.__name__, function.__defaults__)
    return functools.update_wrapper(made, function)


def _refused(name: str, why: str) -> Callable[..., NoReturn]:
    def refuse(*_: Any, **__: Any) -> NoReturn:
        raise NotImplementedError(f"symm_mem::{name}: {why}")

    return refuse


_OF_CLASS = "handles are objects of Python's here, which PyTorch's dispatcher does not take"

_KERNELS: dict[str, Callable[..., Any]] = {
    "one_shot_all_reduce": reductions.one_shot_all_reduce,
    "one_shot_all_reduce_out": reductions.one_shot_all_reduce_out,
    "one_shot_all_reduce_copy": reductions.one_shot_all_reduce_copy,
    "one_shot_all_reduce_copy_out": reductions.one_shot_all_reduce_copy_out,
    "two_shot_all_reduce_": reductions.two_shot_all_reduce,
    "two_shot_all_reduce_out": reductions.two_shot_all_reduce_out,
    "multimem_all_reduce_": reductions.multimem_all_reduce,
    "multimem_one_shot_all_reduce": reductions.multimem_one_shot_all_reduce,
    "multimem_one_shot_all_reduce_out": reductions.multimem_one_shot_all_reduce_out,
    "multimem_one_shot_reduce_out": reductions.multimem_one_shot_reduce_out,
    "multimem_all_gather_out": reductions.multimem_all_gather_out,
    "reduce_scatter_out": reductions.reduce_scatter_out,
    "tile_reduce": reductions.tile_reduce,
    "multi_root_tile_reduce": reductions.multi_root_tile_reduce,
    "memset32_": SymmetricMemory.memset32,
    "stream_write_value32_": SymmetricMemory.stream_write_value32,
    "nvshmem_put": one_sided.put,
    "nvshmem_get": one_sided.get,
    "nvshmem_put_with_signal": one_sided.put_with_signal,
    "nvshmem_wait_for_signal": one_sided.wait_for_signal,
    "nvshmem_broadcast": exchanges.broadcast,
    "nvshmem_all_to_all": exchanges.all_to_all,
    "all_to_all_vdev": exchanges.by_splits,
    "all_to_all_vdev_2d": exchanges.by_experts,
    "all_to_all_vdev_2d_offset": exchanges.by_offsets,
    "nccl_put": one_sided.nccl_put,
    "nccl_get": one_sided.nccl_get,
    "nccl_put_with_signal": one_sided.nccl_put_with_signal,
    "nccl_wait_for_signal": one_sided.nccl_wait_for_signal,
    "nccl_all_to_all_nd": blocks.all_to_all,
    "nccl_reduce_scatter_offset": blocks.reduce_scatter,
    "_low_contention_all_gather_ce_multicast": blocks.all_gather_by_switch,
    "_low_contention_all_gather_ce_multicast_out": blocks.all_gather_by_switch_out,
    "get_remote_tensors": _remote_tensors,
    "fused_all_gather_matmul": lambda a, bs, dim, group, return_A=True: symmetric._fused_all_gather_matmul_fallback(  # noqa: N803
        a, bs, dim, group, return_A=return_A
    ),
    "fused_matmul_reduce_scatter": symmetric._fused_matmul_reduce_scatter_fallback,
    "fused_all_gather_scaled_matmul": symmetric._fused_all_gather_scaled_matmul_fallback,
    "fused_scaled_matmul_reduce_scatter": symmetric._fused_scaled_matmul_reduce_scatter_fallback,
    "_low_contention_all_gather": _all_gather,
    "_low_contention_reduce_scatter": _reduce_scatter,
    "_async_input_mm": _refused(
        "_async_input_mm", "it is a part of PyTorch's own fused_all_gather_matmul, which is another one here: call that"
    ),
    "nccl_put_signal": _refused("nccl_put_signal", f"{_OF_CLASS}: call symm_mem.put_signal"),
    "nccl_wait_signal": _refused("nccl_wait_signal", f"{_OF_CLASS}: call symm_mem.wait_signal"),
    "nccl_get_out": _refused("nccl_get_out", f"{_OF_CLASS}: call symm_mem.get"),
    "nvshmem_get_out": _refused("nvshmem_get_out", f"{_OF_CLASS}: call symm_mem.get"),
    "memcpy_to_multicast_": _refused(
        "memcpy_to_multicast_", "memory of all ranks is written by whole collectives here: call multimem_all_gather_out"
    ),
    "_rendezvous": _refused("_rendezvous", f"{_OF_CLASS}: call symm_mem.rendezvous"),
    "_barrier": _refused("_barrier", f"{_OF_CLASS}: call the handle's barrier"),
}


_FOR_KERNELS = "torch.distributed._symmetric_memory._nvshmem_triton"


def _forget(module: str) -> None:
    """Unloads a module."""
    sys.modules.pop(module, None)


def _launch_without_library(module: Any) -> None:
    """Lets decorated kernels do without NVSHMEM's library for devices, which need not be installed, and not without its
    backend.

    Args:
        module: that has the decorator.
    """
    module.NvshmemLibFinder.found_device_lib_path = "libnvshmem_device.bc"
    launch = module.GridCallableWithExtern.run

    def run(self: Any, *args: Any, **kwargs: Any) -> Any:
        if backends.chosen() != backends.NVSHMEM:
            raise RuntimeError(
                f"nvshmemx_cumodule_init failed: kernel {self.jit_func.fn.__name__!r} calls NVSHMEM's functions, and "
                f"the backend is {backends.chosen()!r}: call symm_mem.set_backend('NVSHMEM') before symm_mem.empty"
            )
        return launch(self, *args, **kwargs)

    module.GridCallableWithExtern.run = run


def install(run: Session) -> None:
    """Gives ranks symmetric memory, until the run ends."""
    run.replace(symmetric, "_SymmetricMemory", SymmetricMemory)
    run.replace(torch._C._distributed_c10d, "_SymmetricMemory", SymmetricMemory)
    for name in ("_group_name_to_workspace_tensor", "_backend_streams", "_symm_mem_pools"):
        run.replace(symmetric, name, RankTable())
    run.replace(symmetric, "_should_use_implicit_mempool", lambda: False)
    run.replace(torch._C._distributed_c10d, "_is_nvshmem_available", lambda: True)
    for name in ("put_signal", "wait_signal"):
        run.replace(symmetric, name, getattr(one_sided, name))
    if hasattr(symmetric, "get"):
        run.replace(symmetric, "get", _by_views(symmetric.get))
    _forget(_FOR_KERNELS)  # it has the Triton that there was when it was loaded
    run.stack.callback(_forget, _FOR_KERNELS)
    run.on_load[_FOR_KERNELS] = _launch_without_library
    if not _library:
        _library.append(torch.library.Library("symm_mem", "IMPL"))
        for name, kernel in _KERNELS.items():
            if hasattr(torch.ops.symm_mem, name):  # the installed PyTorch has it
                _library[0].impl(name, kernel, "CPU")


_library: list[Any] = []  # PyTorch forgets kernels whose library is gone
