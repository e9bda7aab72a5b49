"""torch.nn.DataParallel: copies of a model on several devices of one rank, which compute one after the other."""

from __future__ import annotations

import importlib
import threading
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.cuda import nccl

from torchemu.frontends.torch.device import device_copies, places
from torchemu.frontends.torch.device.patches import Replacements
from torchemu.frontends.torch.device.places import HOST


def put(replaced: Replacements) -> None:
    """Puts what PyTorch's C++ does between devices in place."""
    replaced.put_all(
        torch._C,
        {
            "_broadcast": _broadcast,
            "_broadcast_out": _copy_to,
            "_broadcast_coalesced": _broadcast_coalesced,
            "_scatter": _scatter,
            "_scatter_out": _scatter_out,
            "_gather": _gather,
            "_gather_out": _gather_out,
        },
    )
    replaced.put(nccl, "is_available", lambda tensors: False)  # nn.parallel.comm adds by itself then
    replaced.put(importlib.import_module("torch.nn.parallel.parallel_apply"), "threading", _InTurn)


class _Turn:
    """A thread that is run where it is started.

    Args:
        target: what it calls.
        args: with what.
    """

    def __init__(self, target: Callable[..., object], args: Sequence[Any] = ()) -> None:
        self._target, self._args = target, args

    def start(self) -> None:
        """Calls it."""
        self._target(*self._args)

    def join(self) -> None:
        """It has ended."""


class _InTurn:
    """The module threading of nn.parallel: a thread of its own would be no rank's."""

    Thread = _Turn
    Lock = threading.Lock


def _device(number: int) -> torch.device:
    return HOST if number < 0 else torch.device("cuda", number)


def _on(tensor: torch.Tensor, device: torch.device) -> torch.Tensor:
    """The tensor itself where it is on the device, and else a copy there."""
    meant = places.meant(device)
    return tensor if meant is None or tensor.device == meant else device_copies.moved(tensor, meant)


def _broadcast(tensor: torch.Tensor, devices: Sequence[int]) -> list[torch.Tensor]:
    return [_on(tensor, _device(number)) for number in devices]


def _copy_to(tensor: torch.Tensor, out: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    for target in out:
        target.copy_(tensor)
    return [tensor, *out]


def _broadcast_coalesced(
    tensors: Sequence[torch.Tensor], devices: Sequence[int], buffer_size: int = 0
) -> list[list[torch.Tensor]]:
    first = _device(devices[0])
    if any(t.device != first for t in tensors):
        raise RuntimeError(f"All tensors must be on devices[0]: {devices[0]}")
    return [[_on(t, _device(number)) for t in tensors] for number in devices]


def _parts(tensor: torch.Tensor, count: int, sizes: Sequence[int] | None, dim: int) -> Sequence[torch.Tensor]:
    parts = tensor.chunk(count, dim) if sizes is None else tensor.split(list(sizes), dim)
    if sizes is not None and len(sizes) != count:
        raise RuntimeError(f"Expected devices and chunk_sizes to be of same length, but got {count} and {len(sizes)}")
    return parts


def _scatter(
    tensor: torch.Tensor, devices: Sequence[int], chunk_sizes: Sequence[int] | None, dim: int, streams: Any = None
) -> list[torch.Tensor]:
    parts = _parts(tensor, len(devices), chunk_sizes, dim)
    return [_on(part, _device(number)) for part, number in zip(parts, devices, strict=False)]


def _scatter_out(tensor: torch.Tensor, out: Sequence[torch.Tensor], dim: int, streams: Any = None) -> Any:
    for target, part in zip(out, tensor.split([t.size(dim) for t in out], dim), strict=True):
        target.copy_(part)
    return out


def _gather(tensors: Sequence[torch.Tensor], dim: int, destination: int | None) -> torch.Tensor:
    for index, tensor in enumerate(tensors):
        if not tensor.is_cuda:
            raise RuntimeError(
                f"Expected all input tensors to be CUDA tensors, but tensor at index {index} has device {tensor.device}"
            )
    target = torch.device("cuda") if destination is None else _device(destination)
    return torch.cat([_on(t, target) for t in tensors], dim)


def _gather_out(tensors: Sequence[torch.Tensor], out: torch.Tensor, dim: int) -> torch.Tensor:
    torch.cat([_on(t, out.device) for t in tensors], dim, out=out)
    return out
