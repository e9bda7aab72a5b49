"""Fake tensors (torch._subclasses.fake_tensor), which have shapes and the name of a device, and belong to no device.

PyTorch's mode for them is below all others of a thread, so a rank's mode hands it what it is for, with the names of
devices that the program has given, and takes neither time nor memory for it. C++ asks a fake tensor where it is, makes
others there, and would ask a device's driver: so it hears of a host with a number, which stands for the device.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch
from torch._subclasses import fake_tensor
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode

from torchemu.frontends.torch.device import places
from torchemu.frontends.torch.device.patches import Replacements
from torchemu.frontends.torch.device.places import ACCELERATORS, HOST, STATED_HOST

_FAKE = torch._C._TorchDispatchModeKey.FAKE
_mode = torch._C._get_dispatch_mode
_device_of = torch.ops.prim.device.default

_MOST = 60
"""Devices of each type that have a number; numbers of devices are below 128, and 0 is STATED_HOST's."""

_entered: list[None] = []
"""An element for each fake mode that is entered, of all threads."""


def put(replaced: Replacements) -> None:
    """Puts what knows of fake tensors in place."""
    replaced.put(FakeTensorMode, "__enter__", _entering(FakeTensorMode.__enter__))
    replaced.put(FakeTensorMode, "__exit__", _leaving(FakeTensorMode.__exit__))
    replaced.put(FakeTensorMode, "avoid_device_init", property(lambda self: True))  # constants are copied to none
    replaced.put(torch.Tensor, "_make_subclass", staticmethod(_make_subclass))
    replaced.put(FakeTensor, "__new__", staticmethod(_new(FakeTensor.__new__)))
    replaced.put(FakeTensor, "__torch_dispatch__", classmethod(_answering(FakeTensor.__torch_dispatch__.__func__)))
    handlers = fake_tensor._DISPATCH_META_HANDLERS
    asked = handlers[_device_of]
    replaced.put(fake_tensor, "_DISPATCH_META_HANDLERS", {**handlers, _device_of: lambda args: _told(asked(args))})


def _told(device: torch.device) -> torch.device:
    """Returns what C++ hears of a device."""
    if not places.is_simulated(device):
        return device
    return torch.device("cpu", 1 + _MOST * ACCELERATORS.index(device.type) + (device.index or 0) % _MOST)


def meant(device: torch.device) -> torch.device:
    """Returns the device of which C++ has heard; it says STATED_HOST of none."""
    if not device.index or device.type != "cpu":
        return HOST if device == STATED_HOST else device
    kind, number = divmod(device.index - 1, _MOST)
    return torch.device(ACCELERATORS[kind], number)


def _entering(enter: Callable[[Any], Any]) -> Callable[[Any], Any]:
    @functools.wraps(enter)
    def __enter__(self: Any) -> Any:  # noqa: N807
        mode = enter(self)
        _entered.append(None)
        return mode

    return __enter__


def _leaving(leave: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(leave)
    def __exit__(self: Any, *error: Any) -> Any:  # noqa: N807
        if _entered:
            _entered.pop()
        return leave(self, *error)

    return __exit__


def are_made() -> bool:
    """Reports whether what the thread makes are fake tensors."""
    return bool(_entered) and _mode(_FAKE) is not None


def handed_on(func: Any, args: Any, kwargs: Any) -> Any:
    """Calls an operation that is a fake mode's. Such modes remember what calls have made, for all ranks, so a device is
    named with its number."""
    if kwargs and (device := kwargs.get("device")) is not None:
        kwargs = {**kwargs, "device": places.meant(meant(device))}
    return func(*args, **(kwargs or {}))


def _answering(dispatch: Callable[..., Any]) -> Callable[..., Any]:
    """Makes a fake tensor tell C++ of its device."""

    @functools.wraps(dispatch)
    def __torch_dispatch__(cls: Any, func: Any, *given: Any, **kwargs: Any) -> Any:  # noqa: N807
        answer = dispatch(cls, func, *given, **kwargs)
        return _told(answer) if func is _device_of else answer

    return __torch_dispatch__


def _new(make: Callable[..., Any]) -> Callable[..., Any]:
    """Makes fake tensors where C++ means them to be."""

    @functools.wraps(make)
    def __new__(cls: Any, fake_mode: Any, elem: torch.Tensor, device: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: N807
        return make(cls, fake_mode, elem, meant(torch.device(device)), *args, **kwargs)

    return __new__


_base_make_subclass = torch._C.TensorBase._make_subclass


def _make_subclass(cls: type[Any], data: torch.Tensor, requires_grad: bool = False, **kwargs: Any) -> Any:
    """Tensor._make_subclass: C++ calls for a tensor on a simulated device what it does for one on the host."""
    named = kwargs.get("device_for_backend_keys")
    if named is not None and places.is_simulated(torch.device(named)):
        kwargs = {**kwargs, "device_for_backend_keys": HOST}
    return _base_make_subclass(cls, data, requires_grad, **kwargs)
