"""Time that PyTorch takes a rank's host beside the launches of kernels, as the topology has it."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from typing import Any

import torch

from torchemu.frontends.torch.device.ground import RankLocal, context

_DTENSORS = "torch.distributed.tensor"
"""The module of the class, which is loaded where there are such tensors."""

_pass_under_way = torch._C._current_graph_task_id  # -1 where none goes backwards
_any_requires_grad = torch._C._any_requires_grad


class HostWork:
    """The picoseconds that the running rank's topology has for it.

    Attributes:
        autograd: of a kernel of an operation that autograd records, or goes back through.
        dtensor: of each DTensor that an operation is given.
        dtensor_backward: of an operation of DTensors in a backward pass, beside that.
        functional_collective: of a collective that returns its result, and of waiting for it.
        fsdp: of a hook before or after a module's pass.
        fsdp_parameter: of a parameter that is gathered or whose gradient is reduced, beside that.
        optimizer_parameter: of a parameter that an optimizer steps.
    """

    def __init__(self) -> None:
        host = context().world.spec["host"]
        self.autograd = _picoseconds(host["autograd"])
        self.dtensor = _picoseconds(host["dtensor"])
        self.dtensor_backward = _picoseconds(host["dtensor_backward"])
        self.functional_collective = _picoseconds(host["functional_collective"])
        self.fsdp = _picoseconds(host["fsdp"])
        self.fsdp_parameter = _picoseconds(host["fsdp_parameter"])
        self.optimizer_parameter = _picoseconds(host["optimizer_parameter"])

    def of_kernels(self, args: Sequence[Any]) -> int:
        """Returns what each kernel of an operation takes beside its launch."""
        if _pass_under_way() >= 0 or (torch.is_grad_enabled() and _any_requires_grad(*args)):
            return self.autograd
        return 0

    def of_dtensors(self, args: Sequence[Any]) -> int:
        """Returns what an operation of DTensors takes beside those of their parts."""
        took = self.dtensor * _count(args, sys.modules[_DTENSORS].DTensor)
        if _pass_under_way() >= 0:
            return took + self.dtensor_backward
        return took + self.of_kernels(args)


def _picoseconds(nanoseconds: float) -> int:
    return round(nanoseconds * 1000)


def are_dtensors(types: Iterable[type]) -> bool:
    """Reports whether there are DTensors among tensors of these classes."""
    module = sys.modules.get(_DTENSORS)
    return module is not None and any(issubclass(kind, module.DTensor) for kind in types)


def _count(args: Iterable[Any], kind: type) -> int:
    """Counts the tensors of a class among arguments, and in lists of these."""
    return sum(_count(x, kind) if isinstance(x, (list, tuple)) else isinstance(x, kind) for x in args)


_WORK: RankLocal[HostWork] = RankLocal(HostWork)


def current() -> HostWork:
    """Returns the running rank's."""
    return _WORK.get()
