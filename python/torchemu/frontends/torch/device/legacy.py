"""torch.cuda.FloatTensor and the like: types by which programs made tensors before there were dtypes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from torchemu.frontends.torch.device.patches import Replacements

_NAMES = tuple(name for name in vars(torch.cuda) if name.endswith("Tensor") and hasattr(torch, name))


class _TensorType(type):
    """The type of such types. A call makes a tensor on the current device, or on the one that it names."""

    known: Any
    """PyTorch's type of this name."""
    on_host: Any
    """PyTorch's type for the host."""

    def __call__(cls, *given: Any, device: Any = None) -> torch.Tensor:
        if len(given) == 1 and isinstance(given[0], torch.Tensor):
            if not isinstance(given[0], cls):
                raise TypeError(f"expected {cls.__module__}.{cls.__name__} (got {given[0].type()})")
            return given[0].detach()
        made: torch.Tensor = cls.on_host(*given)
        return made.to("cuda" if device is None else device)

    def __instancecheck__(cls, value: Any) -> bool:
        return isinstance(value, torch.Tensor) and value.is_cuda and value.dtype == cls.known.dtype

    def __getattr__(cls, name: str) -> Any:
        return getattr(type.__getattribute__(cls, "known"), name)


def _set_default(original: Callable[[Any], None]) -> Callable[[Any], None]:
    """Makes PyTorch's function that sets the default type, which knows its own types only."""
    return lambda kind: original(kind.known if isinstance(kind, _TensorType) else kind)


def put(replaced: Replacements) -> None:
    """Puts them in place."""
    for name in _NAMES:
        attributes = {"__module__": "torch.cuda", "known": getattr(torch.cuda, name), "on_host": getattr(torch, name)}
        replaced.put(torch.cuda, name, _TensorType(name, (), attributes))
    replaced.put(torch._C, "_set_default_tensor_type", _set_default(torch._C._set_default_tensor_type))
