"""The refusal of tensors in the host's memory by groups that are for devices only, under --check.

Without it they are sent all the same: scripts that choose nccl where a GPU is there, and leave their tensors on the
host, were often run on gloo only.

What PyTorch itself brings in the host's memory, it would bring on a device on a machine with GPUs: objects, and what
its C++ makes for DistributedDataParallel. So only calls that a program makes itself are looked at.
"""

from __future__ import annotations

import functools
import os
import sys
import types
from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.distributed as dist
from torch.distributed import c10d_logger
from torch.distributed import distributed_c10d as c10d

from torchemu import runtime
from torchemu.frontends.torch.device import places
from torchemu.frontends.torch.session import Session

NO_BACKEND = "No backend type associated with device type cpu"

_PYTORCH = os.path.dirname(torch.__file__) + os.sep


def install(run: Session) -> None:
    """Makes groups refuse them, until the run ends."""
    run.refuse_hosts = refuse
    run.replace(dist, "_verify_params_across_processes", _verifying(dist._verify_params_across_processes))


def are_refused(group: Any) -> bool:
    """Reports whether a group refuses them, in a World that is checked."""
    return bool(group.has_only_devices) and runtime.current().world.ordered


def refuse(group: Any, tensors: Sequence[torch.Tensor]) -> None:
    """Refuses tensors of the host where a program calls a collective itself.

    Args:
        group: that of the collective.
        tensors: what is read and written, results first.

    Raises:
        RuntimeError: the first one is the host's: PyTorch has no backend for that.
        ValueError: another one is: NCCL's refusal.
    """
    if places.of(tensors[0]) is not None and places.of(tensors[-1]) is not None:
        return
    if not (are_refused(group) and is_programs_own()):
        return
    if places.is_on_host(tensors[0]):
        raise RuntimeError(NO_BACKEND)
    if places.is_on_host(tensors[-1]):
        raise ValueError("Tensors must be CUDA and dense")


def is_programs_own() -> bool:
    """Reports whether the function of torch.distributed that runs was called by none of PyTorch's own."""
    frame = sys._getframe(1)
    while frame.f_back is not None and _is_on_the_way(frame.f_code):
        frame = frame.f_back
    return not frame.f_code.co_filename.startswith(_PYTORCH)


def _is_on_the_way(code: types.CodeType) -> bool:
    """Reports whether a function only hands on what it is called with: not so those of objects."""
    file = code.co_filename
    return (
        file.startswith(runtime.PACKAGE)
        or file == c10d_logger.__file__
        or (file == c10d.__file__ and "object" not in code.co_name)
    )


def _verifying(verify: Callable[..., Any]) -> Callable[..., Any]:
    """Makes DistributedDataParallel's first collective refuse a module of the host, as on a machine with GPUs."""

    @functools.wraps(verify)
    def call(group: Any, tensors: Sequence[torch.Tensor], *logger: Any) -> Any:
        if hasattr(group, "has_only_devices") and are_refused(group) and any(map(places.is_on_host, tensors)):
            raise RuntimeError(NO_BACKEND)
        return verify(group, tensors, *logger)

    return call
