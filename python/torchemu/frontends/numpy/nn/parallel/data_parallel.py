"""torch.nn.parallel.DataParallel: one rank that uses several devices."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

from torchemu.frontends.numpy import cuda
from torchemu.frontends.numpy._device import device
from torchemu.frontends.numpy._grad_mode import is_grad_enabled
from torchemu.frontends.numpy._tensor.core import Tensor
from torchemu.frontends.numpy.nn.modules.module import Module
from torchemu.frontends.numpy.nn.parallel.parallel_apply import parallel_apply
from torchemu.frontends.numpy.nn.parallel.replicate import replicate
from torchemu.frontends.numpy.nn.parallel.scatter_gather import gather, scatter_kwargs

__all__ = ["DataParallel", "data_parallel"]


def _number(place: Any) -> int:
    """Of a device, its index; of the current one's kind without an index, the current one's."""
    if isinstance(place, int):
        return place
    found = device(place)
    return cuda.current_device() if found.index is None else found.index


def _all_for(module: Module) -> Sequence[int]:
    """The devices that a module can be copied to."""
    on_host = any(t.device.is_host for t in itertools.chain(module.parameters(), module.buffers()))
    return [] if on_host else range(cuda.device_count())


class DataParallel(Module):
    """A module that cuts its input along a dimension, and has a copy of the module calculate each part on a device.

    Args:
        module: the module, on the first of the devices.
        device_ids: the devices; None: all that the rank has, or none where the module is in the host's memory, as in
            PyTorch without a GPU; then it calculates there, or wherever it is moved.
        output_device: where results are to be; None: on the first device.
        dim: the dimension.

    Attributes:
        module, device_ids, output_device, dim: as given.
    """

    def __init__(
        self, module: Module, device_ids: Sequence[Any] | None = None, output_device: Any = None, dim: int = 0
    ) -> None:
        super().__init__()
        self.dim, self.module = dim, module
        self.device_ids = [_number(place) for place in (_all_for(module) if device_ids is None else device_ids)]
        if not self.device_ids:
            return
        self.output_device = self.device_ids[0] if output_device is None else _number(output_device)
        self.src_device_obj = device("cuda", self.device_ids[0])
        if len(self.device_ids) == 1:
            module.to(self.src_device_obj)

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        """What the copies return, joined along the dimension.

        Raises:
            RuntimeError: a parameter or a buffer is not on the first device.
        """
        if not self.device_ids:
            return self.module(*inputs, **kwargs)
        for t in itertools.chain(self.module.parameters(), self.module.buffers()):
            if t.device != self.src_device_obj:
                raise RuntimeError(
                    f"module must have its parameters and buffers on device {self.src_device_obj} (device_ids[0]) but "
                    f"found one of them on device: {t.device}"
                )
        parts, named = self.scatter(inputs, kwargs, self.device_ids)
        if not parts:
            parts, named = ((),), ({},)
        if len(self.device_ids) == 1:
            return self.module(*parts[0], **named[0])
        replicas = self.replicate(self.module, self.device_ids[: len(parts)])
        return self.gather(self.parallel_apply(replicas, parts, named), self.output_device)

    def replicate(self, module: Module, device_ids: Sequence[Any]) -> list[Any]:
        """Copies of the module, for subclasses to change."""
        return replicate(module, device_ids, not is_grad_enabled())

    def scatter(self, inputs: tuple[Any, ...], kwargs: dict[str, Any] | None, device_ids: Sequence[Any]) -> Any:
        """The arguments of each copy, for subclasses to change."""
        return scatter_kwargs(inputs, kwargs, device_ids, dim=self.dim)

    def parallel_apply(self, replicas: Sequence[Module], inputs: Sequence[Any], kwargs: Any) -> list[Any]:
        """What the copies return, for subclasses to change."""
        return parallel_apply(replicas, inputs, kwargs, self.device_ids[: len(replicas)])

    def gather(self, outputs: Any, output_device: Any) -> Any:
        """The result, for subclasses to change."""
        return gather(outputs, output_device, dim=self.dim)


def data_parallel(
    module: Module,
    inputs: Any,
    device_ids: Sequence[Any] | None = None,
    output_device: Any = None,
    dim: int = 0,
    module_kwargs: dict[str, Any] | None = None,
) -> Tensor:
    """What DataParallel(module, device_ids, output_device, dim) returns.

    Args:
        inputs: a tensor, or a tuple of arguments.
        module_kwargs: keyword arguments.
    """
    args = inputs if isinstance(inputs, tuple) else () if inputs is None else (inputs,)
    return DataParallel(module, device_ids, output_device, dim)(*args, **(module_kwargs or {}))
