"""torch.cuda.nccl's collectives: of tensors on several devices of one process, which calls them once for all."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from torchemu.frontends.torch.device.patches import Replacements
from torchemu.frontends.torch.device.places import ACCELERATORS

_REDUCTIONS: tuple[Callable[..., torch.Tensor], ...] = (torch.add, torch.mul, torch.maximum, torch.minimum, torch.add)
_AVERAGE = 4
"""The last of these, by NCCL's numbers, which divides the sum."""


def put(replaced: Replacements) -> None:
    """Puts what PyTorch's C++ asks NCCL for in place."""
    replaced.put_all(
        torch._C,
        {
            "_nccl_all_reduce": _all_reduce,
            "_nccl_reduce": _reduce,
            "_nccl_broadcast": _broadcast,
            "_nccl_all_gather": _all_gather,
            "_nccl_reduce_scatter": _reduce_scatter,
        },
    )


def _checked(*tensors: torch.Tensor) -> None:
    """Refuses what NCCL does, in PyTorch's words."""
    if any(each.is_sparse or each.device.type not in ACCELERATORS for each in tensors):
        raise RuntimeError("input and output elements have to be cuda dense Tensors")
    if any(not each.is_contiguous() for each in tensors):
        raise RuntimeError("input and output elements have to be contiguous")


def _total(inputs: Sequence[torch.Tensor], op: int, device: torch.device) -> torch.Tensor:
    """Returns the reduction of all inputs on a device."""
    total = inputs[0].to(device)
    for each in inputs[1:]:
        total = _REDUCTIONS[op](total, each.to(device))
    return total / len(inputs) if op == _AVERAGE else total


@torch.no_grad()
def _all_reduce(inputs: Sequence[torch.Tensor], outputs: Sequence[torch.Tensor], op: int, *_: Any) -> None:
    _checked(*inputs, *outputs)
    totals = [_total(inputs, op, output.device) for output in outputs]  # outputs may be inputs
    for output, total in zip(outputs, totals, strict=True):
        output.copy_(total)


@torch.no_grad()
def _reduce(inputs: Sequence[torch.Tensor], output: torch.Tensor, root: int, op: int, *_: Any) -> None:
    _checked(*inputs, output)
    output.copy_(_total(inputs, op, output.device))


@torch.no_grad()
def _broadcast(inputs: Sequence[torch.Tensor], root: int, *_: Any) -> None:
    _checked(*inputs)
    for each in inputs:
        each.copy_(inputs[root])


@torch.no_grad()
def _all_gather(inputs: Sequence[torch.Tensor], outputs: Sequence[torch.Tensor], *_: Any) -> None:
    _checked(*inputs, *outputs)
    for output in outputs:
        output.copy_(torch.cat([each.to(output.device).flatten() for each in inputs]).view_as(output))


@torch.no_grad()
def _reduce_scatter(inputs: Sequence[torch.Tensor], outputs: Sequence[torch.Tensor], op: int, *_: Any) -> None:
    _checked(*inputs, *outputs)
    totals = [_total(inputs, op, output.device).flatten() for output in outputs]
    for index, (output, total) in enumerate(zip(outputs, totals, strict=True)):
        output.copy_(total[index * output.numel() : (index + 1) * output.numel()].view_as(output))
