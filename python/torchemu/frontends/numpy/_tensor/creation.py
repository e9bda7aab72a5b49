"""Making tensors."""

# ruff: noqa: A002 (names are PyTorch's)

from __future__ import annotations

import builtins
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from torchemu import dtypes, runtime
from torchemu.bridge.binding import go
from torchemu.errors import HostMemoryError
from torchemu.frontends.numpy import _settings
from torchemu.frontends.numpy._device import device as Device  # noqa: N812 (device is an argument's name)
from torchemu.frontends.numpy._placement import DPPolicy
from torchemu.frontends.numpy._shape import dims
from torchemu.frontends.numpy._tensor import promotion
from torchemu.frontends.numpy._tensor.conversion import (
    check_differentiable,
    check_number,
    check_real,
    converted,
    quietly,
)
from torchemu.frontends.numpy._tensor.copying import copy_, scalar
from torchemu.frontends.numpy._tensor.core import Tensor, adopted, method
from torchemu.frontends.numpy._tensor.dispatch import Op, _done, never, no_flops
from torchemu.frontends.numpy._tensor.storage import SMALL, Storage
from torchemu.frontends.numpy._tensor.views import as_strided
from torchemu.runtime import memory_use

__all__ = [
    "arange",
    "empty",
    "empty_like",
    "empty_strided",
    "eye",
    "full",
    "full_like",
    "linspace",
    "ones",
    "ones_like",
    "zeros",
    "zeros_like",
]


_ADDRESSABLE = 1 << 46
"""Bytes that no process can have; the core's allocator has the same bound."""

ZEROS, FULL, EYE, ARANGE, LINSPACE = (
    Op(name, never, no_flops) for name in ("zeros", "full", "eye", "arange", "linspace")
)

_MEANINGLESS = ("layout", "pin_memory", "memory_format", "non_blocking")  # options that make no difference here
_OF_ALL = frozenset(("dtype", "device", *_MEANINGLESS))
_OF_SOME = frozenset(("dp", "name", "requires_grad", "out"))


def allocated(shape: Sequence[int], kind: dtypes.dtype, where: Device, world: runtime.World | None = None) -> Tensor:
    """A tensor of zeros.

    Raises:
        RuntimeError: a negative dimension.
        OutOfMemoryError: the device has not that much memory.
        HostMemoryError: the host has not.
    """
    nbytes = math.prod(shape) * kind.itemsize
    if nbytes > SMALL or min(shape, default=1) < 1:
        _check_shape(shape, kind, where)
    world = world or runtime.current().world
    if nbytes <= SMALL:
        return adopted(world, np.zeros(shape, kind.numpy), kind, where)
    if not where.is_host:
        memory_use.current().check(nbytes)
    t = object.__new__(Tensor)
    t._storage = Storage.zeros(world, kind, math.prod(shape))
    if not where.is_host:
        t._storage.piece = memory_use.current().take(t._storage, nbytes)
    t._shape, t.dtype, t.device = tuple(shape), kind, where
    return t


def _check_shape(shape: Sequence[int], kind: dtypes.dtype, where: Device) -> None:
    negative = [n for n in shape if n < 0]
    if negative:
        raise RuntimeError(f"Trying to create tensor with negative dimension {negative[0]}: {list(shape)}")
    nbytes = math.prod([max(n, 1) for n in shape]) * kind.itemsize
    if nbytes > _ADDRESSABLE and not where.is_host:
        memory_use.current().check(nbytes)
    if nbytes > _ADDRESSABLE:
        raise HostMemoryError(
            f"DefaultCPUAllocator: can't allocate memory: you tried to allocate {nbytes} bytes, for a {kind.name} "
            f"tensor of shape {list(shape)}: no machine has so many"
        )


def of_array(array: Any, kind: dtypes.dtype, where: Device, world: runtime.World | None = None) -> Tensor:
    """A tensor of the array's elements, converted."""
    t = allocated(array.shape, kind, where, world)
    t._read()[...] = quietly(converted, array, kind.numpy)  # nobody else has this memory yet
    return t


def options_of(function: str, options: dict[str, Any]) -> tuple[dtypes.dtype | None, Device, dict[str, Any]]:
    """The dtype, if any, and the device that the options of a creating function give, and the rest of them."""
    rest = {name: value for name, value in options.items() if name not in _OF_ALL}
    for name in rest:
        if name not in _OF_SOME:
            raise TypeError(f"{function}() got an unexpected keyword argument '{name}'")
    kind = options.get("dtype")
    return None if kind is None else dtypes.parse(kind), _settings.resolved(options.get("device")), rest


def finished(t: Tensor, rest: dict[str, Any], op: Op | None = None) -> Tensor:
    """The tensor, which op has made, with what the rest of the options says."""
    if op is not None:
        _done(op, (t,), (), ())
    if not rest:
        return t
    if rest.get("out") is not None:
        return copy_(rest["out"], t)
    if rest.get("requires_grad"):
        check_differentiable(t.dtype, "Only")
        t.requires_grad_()
    if rest.get("name"):
        t.name = rest["name"]
    policy = rest.get("dp")
    if policy is not None:
        if not isinstance(policy, DPPolicy):
            raise TypeError(f"dp must be a DPPolicy, not {policy!r}")
        go.PlaceTensor(t._number, policy.cube, policy.pe, policy.num_cubes or 0, policy.num_pes or 0)
        t.dp = policy
    return t


# -- of one value


def zeros(*size: Any, **options: Any) -> Tensor:
    """A tensor of zeros.

    Args:
        size: the shape, as zeros(2, 3) or zeros((2, 3)).
        options: dtype: a torch.dtype or a name ("f16", "float16", …); None is the default dtype.
            device: a torch.device, its name, or a SIP's number; None is the default device.
            dp: how the tensor is sharded over the SIP's cubes and PEs; None puts all of it on one PE.
            name: a name for messages.
            out: a tensor of this shape to store the result in.
            requires_grad: see Tensor.requires_grad_.

    Raises:
        ValueError: unknown dtype, no such SIP, or a policy that the topology cannot follow.
        RuntimeError: a negative dimension, or an unknown kind of device.
        TypeError: an argument of the wrong type.
        MemoryError: there is not that much memory.
    """
    return _blank("zeros", size, options, ZEROS)


def _blank(function: str, size: tuple[Any, ...], options: dict[str, Any], op: Op | None) -> Tensor:
    shape = _shape(function, size, options)
    kind, where, rest = options_of(function, options)
    return finished(allocated(shape, kind or _settings.current().dtype, where), rest, op)


def _shape(function: str, size: tuple[Any, ...], options: dict[str, Any]) -> tuple[int, ...]:
    if "size" in options:
        size = (options.pop("size"),)
    if not size:
        raise TypeError(f'{function}() missing 1 required positional arguments: "size"')
    return dims(size)


def empty(*size: Any, **options: Any) -> Tensor:
    """A tensor whose contents mean nothing (here: zeros, so that runs repeat); the options are those of zeros."""
    return _blank("empty", size, options, None)


def ones(*size: Any, **options: Any) -> Tensor:
    """A tensor of ones; the options are those of zeros."""
    return _filled(_shape("ones", size, options), 1, _settings.current().dtype, "ones", options)


def full(size: Any, fill_value: Any, **options: Any) -> Tensor:
    """A tensor of one value, of the value's own dtype unless another is given; the options are those of zeros."""
    value = fill_value.item() if isinstance(fill_value, Tensor) else fill_value
    return _filled(dims((size,) if isinstance(size, Sequence) else size), value, None, "full", options)


def _filled(
    shape: tuple[int, ...], value: Any, natural: dtypes.dtype | None, function: str, options: dict[str, Any]
) -> Tensor:
    """Of one value; of a natural dtype, or else the value's own, where the options name none."""
    kind, where, rest = options_of(function, options)
    array = scalar(value, function)
    kind = kind or natural or promotion.of_value(value)
    check_number(value, kind)
    number = quietly(converted, array, kind.numpy)
    t = allocated(shape, kind, where)
    t._read()[...] = number  # nobody else has this memory yet
    return finished(t, rest, FULL)


def eye(n: int, m: int | None = None, **options: Any) -> Tensor:
    """A matrix with ones on its diagonal; the options are those of zeros."""
    kind, where, rest = options_of("eye", options)
    kind = kind or _settings.current().dtype
    return finished(of_array(np.eye(n, n if m is None else m), kind, where), rest, EYE)


def empty_strided(size: Any, stride: Any, **options: Any) -> Tensor:
    """Returns what empty gives, with these strides."""
    reach = 1 + builtins.sum((n - 1) * s for n, s in zip(size, stride, strict=True)) if 0 not in size else 0
    return as_strided(empty(reach, **options), size, stride)


def zeros_like(input: Tensor, **options: Any) -> Tensor:
    """Zeros of the tensor's shape, dtype and device; the options are those of zeros."""
    return zeros(input._shape, **as_options(input, options))


def ones_like(input: Tensor, **options: Any) -> Tensor:
    """Ones of the tensor's shape, dtype and device; the options are those of zeros."""
    return ones(input._shape, **as_options(input, options))


def empty_like(input: Tensor, **options: Any) -> Tensor:
    """Returns what empty gives, of the tensor's shape, dtype and device; the options are those of zeros."""
    return empty(input._shape, **as_options(input, options))


def full_like(input: Tensor, fill_value: Any, **options: Any) -> Tensor:
    """One value, in the tensor's shape, dtype and device; the options are those of zeros."""
    return full(input._shape, fill_value, **as_options(input, options))


def as_options(t: Tensor, options: dict[str, Any]) -> dict[str, Any]:
    """The options, with dtype and device as the tensor has them where they are not given."""
    given = {k: v for k, v in options.items() if v is not None or k not in ("dtype", "device")}
    return {"dtype": t.dtype, "device": t.device, **given}


@method
def new_zeros(self: Tensor, *size: Any, **options: Any) -> Tensor:
    """zeros() of the tensor's dtype and device."""
    return zeros(*size, **as_options(self, options))


@method
def new_ones(self: Tensor, *size: Any, **options: Any) -> Tensor:
    """ones() of the tensor's dtype and device."""
    return ones(*size, **as_options(self, options))


@method
def new_empty(self: Tensor, *size: Any, **options: Any) -> Tensor:
    """empty() of the tensor's dtype and device."""
    return empty(*size, **as_options(self, options))


@method
def new_empty_strided(self: Tensor, size: Any, stride: Any, **options: Any) -> Tensor:
    """empty_strided() of the tensor's dtype and device."""
    return empty_strided(size, stride, **as_options(self, options))


@method
def new_full(self: Tensor, size: Any, fill_value: Any, **options: Any) -> Tensor:
    """full() of the tensor's dtype and device."""
    return full(size, fill_value, **as_options(self, options))


# -- of rows of numbers


def arange(*bounds: Any, end: Any = None, start: Any = 0, step: Any = 1, **options: Any) -> Tensor:
    """The numbers from start (0) to end, without it, in steps; integers, if all three are, and floats otherwise.

    Raises:
        RuntimeError: the step is zero, leads away from the end, or there is no end.
    """
    if end is not None:
        bounds = (start, end) if not bounds else (*bounds, end)
    bounds = tuple(b.item() if isinstance(b, Tensor | np.generic) else b for b in bounds)
    first, last, by = _bounds(bounds, step)
    kind, where, rest = options_of("arange", options)
    if kind is not None:
        check_real(kind)
    whole = builtins.all(isinstance(b, int) for b in (first, last, by))
    n = max(-((first - last) // by), 0) if whole else math.ceil((last - first) / by)
    values = first + np.arange(n) * by
    return finished(
        of_array(values, kind or (dtypes.int64 if whole else _settings.current().dtype), where), rest, ARANGE
    )


def _bounds(bounds: tuple[Any, ...], step: Any) -> tuple[Any, Any, Any]:
    if not 1 <= len(bounds) <= 3:
        raise TypeError(f"arange() takes from 1 to 3 numbers, not {len(bounds)}")
    first, last = (0, bounds[0]) if len(bounds) == 1 else bounds[:2]
    by = bounds[2] if len(bounds) == 3 else step
    for bound in (first, last, by):
        check_number(bound, dtypes.float64)
    if by == 0:
        raise RuntimeError("step must be nonzero")
    if not (math.isfinite(first) and math.isfinite(last)):
        raise RuntimeError(f"unsupported range: {first} -> {last}")
    if (last - first) * by < 0:
        raise RuntimeError(f"upper bound and lower bound inconsistent with step sign: {first} to {last} by {by}")
    return first, last, by


def linspace(start: Any, end: Any, steps: int, **options: Any) -> Tensor:
    """So many numbers from start to end, with both, at equal distances; the options are those of zeros."""
    kind, where, rest = options_of("linspace", options)
    kind = kind or _settings.current().dtype
    check_real(kind)
    return finished(of_array(_spread(float(start), float(end), steps, kind), kind, where), rest, LINSPACE)


def _spread(start: float, end: float, steps: int, kind: dtypes.dtype) -> np.ndarray:
    """Calculated from the nearer end, so that both are met."""
    if steps < 0:
        raise RuntimeError(f"number of steps must be non-negative, not {steps}")
    number: Any = kind.numpy.type if kind is dtypes.float32 else np.float64
    step = number((end - start) / (steps - 1)) if steps > 1 else number(0)
    i = np.arange(steps)
    up, down = number(start) + step * i.astype(number), number(end) - step * (steps - 1 - i).astype(number)
    return np.where(i < steps / 2, up, down) if steps > 1 else up
