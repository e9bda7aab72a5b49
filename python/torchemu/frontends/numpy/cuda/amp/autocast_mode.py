"""torch.amp.autocast of the device."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import Any

from torchemu import dtypes
from torchemu.frontends.numpy import amp

__all__ = ["autocast", "custom_bwd", "custom_fwd"]


def _deprecated(name: str, instead: str) -> None:
    warnings.warn(
        f"`torch.cuda.amp.{name}(args...)` is deprecated. Please use `torch.amp.{instead}` instead.",
        FutureWarning,
        stacklevel=3,
    )


class autocast(amp.autocast):  # noqa: N801 (PyTorch's name)
    """torch.amp.autocast("cuda"); the arguments are its."""

    def __init__(self, enabled: bool = True, dtype: Any = dtypes.float16, cache_enabled: bool = True) -> None:
        _deprecated("autocast", "autocast('cuda', args...)")
        super().__init__("cuda", dtype, enabled, cache_enabled)


def custom_fwd(fwd: Callable[..., Any] | None = None, *, cast_inputs: dtypes.dtype | None = None) -> Any:
    """torch.amp.custom_fwd with device_type="cuda"."""
    _deprecated("custom_fwd", "custom_fwd(args..., device_type='cuda')")
    decorator = functools.partial(amp.custom_fwd, device_type="cuda", cast_inputs=cast_inputs)
    return decorator if fwd is None else decorator(fwd)


def custom_bwd(bwd: Callable[..., Any]) -> Any:
    """torch.amp.custom_bwd with device_type="cuda"."""
    _deprecated("custom_bwd", "custom_bwd(args..., device_type='cuda')")
    return amp.custom_bwd(bwd, device_type="cuda")
