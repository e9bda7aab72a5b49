"""Tensor.to and its kin: copies between devices and the host, and their gradients, which go back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from torchemu.frontends.torch.device import named, places
from torchemu.frontends.torch.device.places import HOST, STATED_HOST

_to_copy = torch.ops.aten._to_copy.default
_base = torch._C.TensorBase


class _Move(torch.autograd.Function):
    """A copy to another device."""

    @staticmethod
    def forward(ctx: Any, tensor: torch.Tensor, device: torch.device, options: dict[str, Any]) -> torch.Tensor:
        ctx.back = tensor.device, tensor.dtype
        return _to_copy(tensor, device=device, **options)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        device, dtype = ctx.back
        return to(grads[0], device, dtype), None, None


def moved(tensor: torch.Tensor, device: torch.device, **options: Any) -> torch.Tensor:
    """Returns a copy of a tensor on another device: HOST, or a simulated one with its index."""
    device = STATED_HOST if device.type == "cpu" else device
    options = {name: value for name, value in options.items() if value is not None}
    if tensor.requires_grad and torch.is_grad_enabled() and (tensor.is_floating_point() or tensor.is_complex()):
        copy: torch.Tensor = _Move.apply(tensor, device, options)
        return copy
    return _to_copy(tensor, device=device, **options)


def to(self: torch.Tensor, *given: Any, **kwargs: Any) -> torch.Tensor:
    """Tensor.to: copies where the device, the dtype or the memory format is another one, or a copy is asked for."""
    args: Any = given
    if args and isinstance(args[0], torch.Tensor):
        args = (args[0].device, args[0].dtype, *args[1:])
    elif isinstance(other := kwargs.get("other"), torch.Tensor):
        kwargs = {**kwargs, "device": other.device, "dtype": other.dtype}
        del kwargs["other"]
    copy = kwargs.pop("copy", False)
    if len(args) > 3:
        args, copy = args[:3], args[3]
    elif len(args) == 3 and isinstance(args[0], torch.dtype):
        args, copy = args[:2], args[2]
    named.note(args[0] if args else kwargs.get("device"))
    device, dtype, non_blocking, memory_format = torch._C._nn._parse_to(*args, **kwargs)
    if device is None and len(args) + len(kwargs) > 0 and isinstance(args[0] if args else None, int):
        device = torch.device("cuda", args[0])
    want = places.meant(device)
    have = self.device
    options: dict[str, Any] = {"non_blocking": non_blocking, "memory_format": memory_format}
    if want is None or want == have or (want.type == have.type == "cpu"):
        options = {name: value for name, value in options.items() if value is not None}
        return _base.to(self, dtype or self.dtype, copy=copy, **options)
    if want.type == "meta" and places.is_simulated(have) and not (self.requires_grad and torch.is_grad_enabled()):
        return torch.empty_strided(self.shape, self.stride(), dtype=dtype or self.dtype, device=want)
    if (not places.is_simulated(want) and want.type != "cpu") or not _is_ours(have):
        return _base.to(self, want, dtype or self.dtype, copy=copy, non_blocking=non_blocking)
    return moved(self, want, dtype=dtype, **options)


def _is_ours(device: torch.device) -> bool:
    return device.type == "cpu" or places.is_simulated(device)


def cuda(
    self: torch.Tensor, device: Any = None, non_blocking: bool = False, memory_format: Any = torch.preserve_format
) -> torch.Tensor:
    """Tensor.cuda."""
    named.note(device)
    device = torch.device("cuda") if device is None else device
    return to(self, places.meant(device), non_blocking=non_blocking, memory_format=memory_format)


def cpu(self: torch.Tensor, memory_format: Any = torch.preserve_format) -> torch.Tensor:
    """Tensor.cpu."""
    return to(self, HOST, memory_format=memory_format)


def copy_(original: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
    """Makes Tensor.copy_ of PyTorch's: the gradient of a source on another device goes back there."""

    def copy_(self: torch.Tensor, other: Any, non_blocking: bool = False) -> torch.Tensor:
        """Tensor.copy_."""
        if isinstance(other, torch.Tensor) and other.requires_grad and torch.is_grad_enabled():
            device = self.device
            if device != other.device and _is_ours(device) and _is_ours(other.device):
                other = moved(other, device)
        return original(self, other, non_blocking)

    return copy_


def type_(original: Callable[..., Any]) -> Callable[..., Any]:
    """Makes Tensor.type of PyTorch's: names of types say that a tensor is on a device."""

    def type_(self: torch.Tensor, dtype: Any = None, non_blocking: bool = False, **kwargs: Any) -> Any:
        """Tensor.type."""
        where = places.of(self)
        if dtype is None:
            name = original(self)
            return name if where is None else name.replace("torch.", f"torch.{where.device.type}.", 1)
        text = (
            dtype
            if isinstance(dtype, str)
            else f"{dtype.__module__}.{dtype.__name__}"
            if isinstance(dtype, type)
            else ""
        )
        if text:
            on_device = text.startswith("torch.cuda.")
            kind = original(torch.empty(0, device=HOST), text.replace("torch.cuda.", "torch.")).dtype
            return to(self, torch.device("cuda") if on_device else HOST, kind, non_blocking)
        return original(self, dtype, non_blocking, **kwargs)

    return type_


def type_as(original: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
    """Makes Tensor.type_as of PyTorch's: a tensor's type says where it is, which C++ takes for the host."""

    def type_as(self: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
        """Tensor.type_as."""
        return original(self, other) if places.of(self) is places.of(other) else to(self, other)

    return type_as


def new(original: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
    """Makes Tensor.new of PyTorch's, by which programs made tensors like another one before there were others."""

    def new(self: torch.Tensor, *given: Any, device: Any = None, **kwargs: Any) -> torch.Tensor:
        """Tensor.new."""
        where = self.device if device is None else places.meant(device)
        if places.of(self) is None and (where is None or not places.is_simulated(where)):
            # PyTorch warns of storages, as a worker's batches are made of, where it is told a device, be it None.
            return original(self, *given, **({} if device is None else {"device": device}), **kwargs)
        return to(original(self, *given, **kwargs), where)

    return new
