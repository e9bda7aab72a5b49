"""torch.distributed._symmetric_memory: memory of each rank that the others read and write without its doing.

An operation on a view of a peer's memory costs a message on the fabric. ``torch.ops.symm_mem`` has all_reduce by
the one-shot and two-shot algorithms of the fabric; there is no multicast.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torchemu.frontends.numpy as torch
from torchemu import dtypes
from torchemu.frontends.numpy import _settings
from torchemu.frontends.numpy._absent import lacks
from torchemu.frontends.numpy._tensor import Tensor
from torchemu.frontends.numpy.distributed._process_group import ProcessGroup, find_by_name
from torchemu.frontends.numpy.distributed._symmetric_memory import _handle, _peers
from torchemu.frontends.numpy.distributed._symmetric_memory._handle import _SymmetricMemory

__all__ = ["empty", "is_symm_mem_tensor", "rendezvous"]


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


__getattr__ = lacks(__name__)
