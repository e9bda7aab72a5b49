"""torch.ahbm: the simulated devices by their own name, as benches have it."""

from __future__ import annotations

import sys
import types
from typing import Any

import torch

from torchemu.frontends.torch.device.patches import Replacements

_NAMES = (
    "Event", "Stream", "StreamContext", "current_device", "current_stream", "default_stream", "device_count",
    "get_rng_state", "is_available", "manual_seed", "manual_seed_all", "set_device", "set_rng_state", "set_stream",
    "stream", "synchronize", "_is_in_bad_fork",
)  # fmt: skip
"""Names of torch.ahbm. They mean what they mean in torch.cuda."""


class _Module(types.ModuleType):
    """torch.ahbm. Its first use makes the name one of devices: from then on PyTorch takes a bare number, as in
    ``tensor.to(0)``, for such a device, which it has for ever; programs for CUDA are to get ``cuda``."""

    def __getattr__(self, name: str) -> Any:
        if name not in _NAMES:
            raise AttributeError(f"module 'torch.ahbm' has no attribute {name!r}")
        if torch._C._get_privateuse1_backend_name() == "privateuseone":
            torch.utils.rename_privateuse1_backend("ahbm")
        vars(self).update({name: getattr(torch.cuda, name) for name in _NAMES})
        return vars(self)[name]


def put(replaced: Replacements) -> None:
    """Puts torch.ahbm in place, after torch.cuda."""
    module: Any = _Module("torch.ahbm", __doc__)
    module.__all__ = [name for name in _NAMES if name[0] != "_"]
    replaced.put(torch, "ahbm", module)
    replaced.put(_Loaded(), "torch.ahbm", module)


class _Loaded:
    """sys.modules, as an object with attributes."""

    def __init__(self) -> None:
        self.__dict__ = sys.modules
