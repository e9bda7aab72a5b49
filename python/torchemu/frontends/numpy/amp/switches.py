"""torch.is_autocast_enabled and the like: what asks for the state of autocast, or sets it without a block."""

from __future__ import annotations

import functools

from torchemu import dtypes
from torchemu.frontends.numpy._device import CPU, device
from torchemu.frontends.numpy._tensor import autocasting

__all__ = [
    "autocast_decrement_nesting",
    "autocast_increment_nesting",
    "clear_autocast_cache",
    "get_autocast_cpu_dtype",
    "get_autocast_dtype",
    "get_autocast_gpu_dtype",
    "is_autocast_cache_enabled",
    "is_autocast_cpu_enabled",
    "is_autocast_enabled",
    "set_autocast_cache_enabled",
    "set_autocast_cpu_dtype",
    "set_autocast_cpu_enabled",
    "set_autocast_dtype",
    "set_autocast_enabled",
    "set_autocast_gpu_dtype",
]


def _kind(device_type: str) -> str:
    """The kind of device that is meant.

    Raises:
        RuntimeError: there is no such.
    """
    return device(device_type).type


def is_autocast_enabled(device_type: str = "cuda") -> bool:
    """Whether autocast is on for such devices.

    Raises:
        RuntimeError: there are no such devices.
    """
    return _kind(device_type) in autocasting.current().enabled


def set_autocast_enabled(device_type: str | bool, enabled: bool | None = None) -> None:
    """Turns autocast on or off for such devices; called with a bool only, for "cuda".

    Raises:
        RuntimeError: there are no such devices.
    """
    kind, on = ("cuda", device_type) if enabled is None else (device_type, enabled)
    autocasting.current().enable(_kind(str(kind)), bool(on))


def get_autocast_dtype(device_type: str) -> dtypes.dtype:
    """The dtype that autocast lowers to on such devices.

    Raises:
        RuntimeError: there are no such devices.
    """
    return autocasting.current().lower[_kind(device_type)]


def set_autocast_dtype(device_type: str, dtype: dtypes.dtype) -> None:
    """Makes it another.

    Raises:
        RuntimeError: there are no such devices. TypeError: not a dtype.
    """
    if not isinstance(dtype, dtypes.dtype):
        raise TypeError(
            f"set_autocast_dtype(): argument 'dtype' (position 2) must be torch.dtype, not {type(dtype).__name__}"
        )
    autocasting.current().lower[_kind(device_type)] = dtype


def is_autocast_cache_enabled() -> bool:
    """Whether conversions of parameters are kept."""
    return autocasting.current().caches


def set_autocast_cache_enabled(enabled: bool) -> None:
    """Keeps conversions of parameters from now on, or does not."""
    autocasting.current().caches = enabled


def clear_autocast_cache() -> None:
    """Forgets the conversions of parameters."""
    autocasting.current().kept.clear()


def autocast_increment_nesting() -> int:
    """Says that a block has been entered, and returns in how many the rank is."""
    own = autocasting.current()
    own.depth += 1
    return own.depth


def autocast_decrement_nesting() -> int:
    """Says that a block has been left, and returns in how many the rank is."""
    own = autocasting.current()
    own.depth -= 1
    return own.depth


is_autocast_cpu_enabled = functools.partial(is_autocast_enabled, CPU)
set_autocast_cpu_enabled = functools.partial(set_autocast_enabled, CPU)
get_autocast_gpu_dtype = functools.partial(get_autocast_dtype, "cuda")
set_autocast_gpu_dtype = functools.partial(set_autocast_dtype, "cuda")
get_autocast_cpu_dtype = functools.partial(get_autocast_dtype, CPU)
set_autocast_cpu_dtype = functools.partial(set_autocast_dtype, CPU)
