"""torch.distributed._symmetric_memory: memory of each rank that the others read and write without its doing.

An operation on a view of a peer's memory costs a message on the fabric. The collectives of ``torch.ops.symm_mem`` are
one-shot and two-shot algorithms of the fabric; there is no multicast.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torchemu.frontends.numpy as torch
from torchemu import dtypes
from torchemu.frontends.numpy import _settings
from torchemu.frontends.numpy._memory_pools import Allocator, MemPool
from torchemu.frontends.numpy._tensor import Tensor
from torchemu.frontends.numpy.distributed._process_group import ProcessGroup, find_by_name
from torchemu.frontends.numpy.distributed._symmetric_memory import _handle, _peers
from torchemu.frontends.numpy.distributed._symmetric_memory._handle import BACKENDS, _SymmetricMemory, settings
from torchemu.frontends.numpy.distributed._symmetric_memory._workspaces import (
    enable_symm_mem_for_group,
    get_symm_mem_workspace,
    is_symm_mem_enabled_for_group,
    make_contiguous_for_perm,
    restride_A_for_fused_matmul_reduce_scatter,
    restride_A_shard_for_fused_all_gather_matmul,
)

__all__ = [
    "empty",
    "enable_symm_mem_for_group",
    "get",
    "get_backend",
    "get_mem_pool",
    "get_mempool_allocator",
    "get_signal_pad_size",
    "get_symm_mem_workspace",
    "is_nvshmem_available",
    "is_symm_mem_enabled_for_group",
    "is_symm_mem_tensor",
    "make_contiguous_for_perm",
    "put_signal",
    "rendezvous",
    "restride_A_for_fused_matmul_reduce_scatter",
    "restride_A_shard_for_fused_all_gather_matmul",
    "set_backend",
    "set_signal_pad_size",
    "wait_signal",
]


def empty(*size: Any, dtype: Any = None, device: Any = None) -> Tensor:
    """A tensor of this rank whose memory others can have access to, after a rendezvous.

    Args:
        size: the shape: numbers, or one sequence of them.
        dtype: None is the default dtype.
        device: the rank's; None is the default device.

    Raises:
        RuntimeError: the device is the host.
    """
    where = _settings.resolved(_settings.get_default_device() if device is None else device)
    if where.is_host:
        raise RuntimeError("SymmetricMemory does not support device type cpu")
    settings.get().allocated = True
    shape = size[0] if len(size) == 1 and isinstance(size[0], Sequence) else size
    kind = dtypes.parse(torch.get_default_dtype() if dtype is None else dtype)
    return _peers.allocated(tuple(shape), kind, where)


def is_symm_mem_tensor(tensor: Tensor) -> bool:
    """Reports whether the tensor's memory is from empty, of this rank or another one."""
    return _peers.is_symmetric(tensor)


def rendezvous(tensor: Tensor, group: str | ProcessGroup) -> _SymmetricMemory:
    """Makes the memory of all ranks' tensors known to all ranks of a group, each of which calls this.

    Args:
        tensor: from empty, of the same size on all ranks.
        group: the group or its name.

    Raises:
        TypeError: not a group.
        RuntimeError: the tensor is not from empty; no such group; other ranks have memory of another size.
    """
    if isinstance(group, str):
        group = find_by_name(group)
    elif not isinstance(group, ProcessGroup):
        raise TypeError(f"rendezvous: unsupported group type: {type(group)}")
    return _handle.rendezvous(tensor, group)


def is_nvshmem_available() -> bool:
    """False."""
    return False


def set_backend(name: str) -> None:
    """Names the allocator of later symmetric memory. All of them are the emulated fabric's.

    Raises:
        RuntimeError: no such allocator, or there is symmetric memory of another one.
    """
    mine = settings.get()
    if name not in BACKENDS:
        raise RuntimeError(f"SymmetricMemory does not find allocation backend {name}")
    if mine.allocated and name != mine.backend:
        raise RuntimeError(f"SymmetricMemory cannot change its backend to {name}: memory of {mine.backend} is in use")
    mine.backend = name


def get_backend(device: Any) -> str | None:
    """The allocator's name for a device; None for the host."""
    return None if _settings.resolved(device).is_host else settings.get().backend


def set_signal_pad_size(size: int) -> None:
    """Makes the signal pads of later rendezvous so many bytes long.

    Raises:
        TypeError: not a size.
    """
    if not isinstance(size, int) or size < 0:
        raise TypeError(f"(): incompatible function arguments: {size!r} is no number of bytes")
    settings.get().pad_size = size


def get_signal_pad_size() -> int:
    """The bytes of a signal pad of a later rendezvous."""
    return settings.get().pad_size


def get_mempool_allocator(device: Any) -> Allocator:
    """Returns what makes a torch.cuda.MemPool one of symmetric memory.

    Raises:
        RuntimeError: the device is the host.
    """
    return _SymmetricMemory.get_mempool_allocator(device)


def get_mem_pool(device: Any) -> MemPool:
    """This rank's pool of symmetric memory: what is allocated inside of ``torch.cuda.use_mem_pool(pool)`` is as if it
    were from empty. All ranks of a group have to allocate alike.

    Raises:
        RuntimeError: the device is the host.
    """
    allocator, mine = get_mempool_allocator(device), settings.get()
    if mine.pool is None:
        mine.pool = MemPool(allocator, no_split=True)
    mine.allocated = True
    return mine.pool


def get(dst: Tensor, hdl: _SymmetricMemory, peer: int, offset: int = 0) -> None:
    """Fills a tensor of this rank from a peer's memory, from so many elements on."""
    dst.copy_(hdl.get_buffer(peer, dst.shape, dst.dtype, offset))


def put_signal(src: Tensor, hdl: _SymmetricMemory, peer: int) -> None:
    """Copies a tensor of this rank to the begin of a peer's memory, and signals the peer. Of backend NCCL only.

    Raises:
        ValueError: the backend is another one.
    """
    _check_nccl("put_signal", src.device)
    hdl.get_buffer(peer, src.shape, src.dtype).copy_(src)
    hdl.put_signal(peer)


def wait_signal(hdl: _SymmetricMemory, peer: int) -> None:
    """Makes the current stream wait for a peer's put_signal. Of backend NCCL only.

    Raises:
        ValueError: the backend is another one.
    """
    _check_nccl("wait_signal", hdl.device)
    hdl.wait_signal(peer)


def _check_nccl(function: str, device: Any) -> None:
    backend = get_backend(device)
    if backend != "NCCL":
        raise ValueError(f"{function}: unsupported backend: {backend}")
