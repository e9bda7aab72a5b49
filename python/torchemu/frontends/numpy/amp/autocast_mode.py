"""torch.amp.autocast, and what asks and sets the same without it.

What autocast does to operations is in ``_tensor.autocasting``; here is who turns it on.
"""

from __future__ import annotations

import contextlib
import functools
import warnings
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Self

import numpy as np

from torchemu import dtypes
from torchemu.frontends.numpy._device import ACCELERATORS, CPU, device
from torchemu.frontends.numpy._tensor import autocasting
from torchemu.frontends.numpy._tensor.core import Tensor
from torchemu.frontends.numpy.amp.switches import (
    autocast_decrement_nesting,
    clear_autocast_cache,
    get_autocast_dtype,
    is_autocast_cache_enabled,
    is_autocast_enabled,
)

__all__ = ["autocast", "autocast_decorator", "custom_bwd", "custom_fwd", "is_autocast_available"]

_LOWER = (dtypes.bfloat16, dtypes.float16)
Function = Callable[..., Any]


def _checked(device_type: Any) -> str:
    if not isinstance(device_type, str):
        raise ValueError(f"Expected `device_type` of type `str`, got: `{type(device_type)}`")
    return device_type


class autocast:  # noqa: N801 (PyTorch's name)
    """Inside it operations on float32, float16 and bfloat16 choose their dtype: products are calculated in the lower
    one, what loses too much by it in float32; results have those dtypes. As a decorator it is on in each call.

    Args:
        device_type: "cuda" (or "ahbm") or "cpu": tensors of which devices it is for. What torch.device() gives for it.
        dtype: the lower one; None: what get_autocast_dtype says, at first float16, and bfloat16 of "cpu".
        enabled: False turns it off, where a block within a block is to leave dtypes alone.
        cache_enabled: whether a parameter is converted once for all its uses until the outermost block ends; None: as
            before, at first True.

    Raises:
        ValueError: the type is not a string.
        RuntimeError: there is no such type, or it is one of a device with a number.
    """

    def __init__(
        self, device_type: str, dtype: Any = None, enabled: bool = True, cache_enabled: bool | None = None
    ) -> None:
        self.device = _checked(device_type)
        self.fast_dtype = get_autocast_dtype(device_type) if dtype is None else dtype
        if not is_autocast_available(device_type):
            raise RuntimeError(f"User specified an unsupported autocast device_type '{device_type}'")
        self._cache_enabled = is_autocast_cache_enabled() if cache_enabled is None else cache_enabled
        self._enabled = enabled and self._is_lower(self.fast_dtype)
        self._before: list[tuple[bool, Any, bool]] = []

    def _is_lower(self, dtype: Any) -> bool:
        """Whether it is a dtype to lower to. On accelerators any is taken, as in PyTorch."""
        if self.device != CPU or dtype in _LOWER:
            return True
        warnings.warn(
            f"In {self.device.upper()} autocast, but the target dtype is not supported. Disabling autocast.\n"
            f"{self.device.upper()} Autocast only supports dtypes of {', '.join(map(str, _LOWER))} currently.",
            stacklevel=3,
        )
        return False

    def __enter__(self) -> Self:
        own = autocasting.current()
        self._before.append((self.device in own.enabled, own.lower[self.device], own.caches))
        self._set(self._enabled, self.fast_dtype, self._cache_enabled)
        own.depth += 1
        return self

    def __exit__(self, *_: object) -> None:
        if autocast_decrement_nesting() == 0:
            clear_autocast_cache()
        self._set(*self._before.pop())

    def _set(self, enabled: bool, lower: Any, caches: bool) -> None:
        own = autocasting.current()
        own.lower[self.device], own.caches = lower, caches
        own.enable(self.device, enabled)

    def __call__(self, func: Function) -> Function:
        return autocast_decorator(self, func)


def autocast_decorator(autocast_instance: autocast, func: Function) -> Function:
    """The function, each call of which is in a block of its own as the given one: ranks call it in turns."""
    kind, lower = autocast_instance.device, autocast_instance.fast_dtype
    enabled, caches = autocast_instance._enabled, autocast_instance._cache_enabled

    @functools.wraps(func)
    def call(*args: Any, **kwargs: Any) -> Any:
        with autocast(kind, lower, enabled, caches):
            return func(*args, **kwargs)

    return call


def is_autocast_available(device_type: str) -> bool:
    """Whether there is autocast for such devices: "cuda", "ahbm" and "cpu".

    Raises:
        RuntimeError: there are no such devices.
    """
    return device(device_type).type == device_type and device_type in (CPU, *ACCELERATORS)


# -- functions of a class whose operations are to follow autocast


def custom_fwd(fwd: Function | None = None, *, device_type: str, cast_inputs: dtypes.dtype | None = None) -> Any:
    """A decorator of the forward of an autograd.Function, whose backward has custom_bwd.

    Args:
        fwd: the function; None: a decorator is returned.
        device_type: as of autocast.
        cast_inputs: where autocast is on, convert arguments to this dtype and call forward with it off; None: call
            forward as everything is.

    Raises:
        ValueError: the type is not a string.
    """
    _checked(device_type)
    if fwd is None:
        return functools.partial(custom_fwd, device_type=device_type, cast_inputs=cast_inputs)
    forward = fwd

    @functools.wraps(forward)
    def call(*args: Any, **kwargs: Any) -> Any:
        ctx, on = args[0], is_autocast_enabled(device_type)
        ctx._dtype = get_autocast_dtype(device_type)
        ctx._fwd_used_autocast = on and cast_inputs is None
        if not on or cast_inputs is None:
            return forward(*args, **kwargs)
        with autocast(device_type, enabled=False):
            return forward(*_cast(args, device_type, cast_inputs), **_cast(kwargs, device_type, cast_inputs))

    return call


def custom_bwd(bwd: Function | None = None, *, device_type: str) -> Any:
    """A decorator of the backward of an autograd.Function, which then runs as its forward did.

    Args:
        bwd: the function; None: a decorator is returned.
        device_type: as of autocast.

    Raises:
        ValueError: the type is not a string.
    """
    _checked(device_type)
    if bwd is None:
        return functools.partial(custom_bwd, device_type=device_type)
    backward = bwd

    @functools.wraps(backward)
    def call(*args: Any, **kwargs: Any) -> Any:
        with autocast(device_type, enabled=args[0]._fwd_used_autocast, dtype=args[0]._dtype):
            return backward(*args, **kwargs)

    return call


def _cast(value: Any, kind: str, to: dtypes.dtype) -> Any:
    """What forward is called with, all tensors of the device that autocast is for converted."""
    if isinstance(value, Tensor):
        floats = value.is_floating_point() and value.dtype is not dtypes.float64
        return value.to(to) if floats and value.device.type == kind else value
    if isinstance(value, str | bytes | np.ndarray):
        return value
    if isinstance(value, Mapping):
        return {_cast(k, kind, to): _cast(v, kind, to) for k, v in value.items()}
    if isinstance(value, Iterable):
        items = (_cast(each, kind, to) for each in value)
        return type(value)(items) if isinstance(value, list | tuple) else items
    return value


class Remembered:
    """How autocast is now, for the program to come back to: a context each time that it is called."""

    def __init__(self) -> None:
        own = autocasting.current()
        self._blocks = [(kind, lower, kind in own.enabled, own.caches) for kind, lower in own.lower.items()]

    def __call__(self) -> contextlib.ExitStack:
        stack = contextlib.ExitStack()
        for block in self._blocks:
            stack.enter_context(autocast(*block))
        return stack
