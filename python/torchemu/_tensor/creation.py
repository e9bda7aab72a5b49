"""Making tensors."""

# ruff: noqa: A002 (names are PyTorch's)

from __future__ import annotations

import builtins
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from torchemu import _runtime, _settings, dtypes
from torchemu._binding import go
from torchemu._device import device as Device  # noqa: N812 (device is an argument's name)
from torchemu._placement import DPPolicy
from torchemu._shape import Size, dims
from torchemu._tensor.conversion import converted, quietly
from torchemu._tensor.copying import copy_, moved, scalar
from torchemu._tensor.core import Tensor, adopted
from torchemu._tensor.dispatch import Op, _done, never, no_flops
from torchemu._tensor.kernels import launch_copy
from torchemu._tensor.storage import SMALL, Storage
from torchemu._tensor.views import detach

__all__ = [
    "arange",
    "as_tensor",
    "asarray",
    "empty",
    "empty_like",
    "eye",
    "from_dlpack",
    "from_numpy",
    "frombuffer",
    "full",
    "full_like",
    "linspace",
    "logspace",
    "ones",
    "ones_like",
    "scalar_tensor",
    "tensor",
    "zeros",
    "zeros_like",
]


_ADDRESSABLE = 1 << 46
"""Bytes that no process can have; the core's allocator has the same bound."""

ZEROS, FULL, EYE, ARANGE, LINSPACE = (
    Op(name, never, no_flops) for name in ("zeros", "full", "eye", "arange", "linspace")
)

_MEANINGLESS = ("layout", "pin_memory", "memory_format", "non_blocking")  # options that make no difference here


def allocated(shape: Sequence[int], kind: dtypes.dtype, where: Device, world: _runtime.World | None = None) -> Tensor:
    """A tensor of zeros.

    Raises:
        RuntimeError: a negative dimension.
        MemoryError: there is not that much memory.
    """
    if builtins.any(n < 0 for n in shape):
        negative = next(n for n in shape if n < 0)
        raise RuntimeError(f"Trying to create tensor with negative dimension {negative}: {list(shape)}")
    nbytes = math.prod(max(n, 1) for n in shape) * kind.itemsize
    if nbytes > _ADDRESSABLE:
        raise MemoryError(f"a {kind.name} tensor of shape {list(shape)} takes {nbytes} bytes: no machine has so many")
    world = world or _runtime.current().world
    if nbytes <= SMALL:
        return adopted(world, np.zeros(shape, kind.numpy), kind, where)
    t = object.__new__(Tensor)
    t._storage = Storage.zeros(world, kind, math.prod(shape))
    t._shape, t.dtype, t.device = tuple(shape), kind, where
    return t


def of_array(array: Any, kind: dtypes.dtype, where: Device, world: _runtime.World | None = None) -> Tensor:
    """A tensor of the array's elements, converted."""
    t = allocated(array.shape, kind, where, world)
    t._read()[...] = quietly(converted, array, kind.numpy)  # nobody else has this memory yet
    return t


def _options(function: str, options: dict[str, Any]) -> tuple[dtypes.dtype | None, Device, dict[str, Any]]:
    """The dtype, if any, and the device that the options of a creating function give, and the rest of them."""
    rest = {k: v for k, v in options.items() if k not in ("dtype", "device", *_MEANINGLESS)}
    for name in rest:
        if name not in ("dp", "name", "requires_grad", "out"):
            raise TypeError(f"{function}() got an unexpected keyword argument '{name}'")
    kind = options.get("dtype")
    return None if kind is None else dtypes.parse(kind), _settings.resolved(options.get("device")), rest


def _finished(t: Tensor, rest: dict[str, Any], op: Op | None = None) -> Tensor:
    """The tensor, which op has made, with what the rest of the options says."""
    if op is not None:
        _done(op, (t,), (), ())
    if not rest:
        return t
    if rest.get("out") is not None:
        return copy_(rest["out"], t)
    if rest.get("requires_grad"):
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
    kind, where, rest = _options(function, options)
    return _finished(allocated(shape, kind or _settings.current().dtype, where), rest, op)


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
    natural = _natural(scalar(value, "full"), value)
    return _filled(dims((size,) if isinstance(size, Sequence) else size), value, natural, "full", options)


def _filled(
    shape: tuple[int, ...], value: Any, natural: dtypes.dtype, function: str, options: dict[str, Any]
) -> Tensor:
    kind, where, rest = _options(function, options)
    number = quietly(converted, scalar(value, function), (kind or natural).numpy)
    t = allocated(shape, kind or natural, where)
    t._read()[...] = number  # nobody else has this memory yet
    return _finished(t, rest, FULL)


def eye(n: int, m: int | None = None, **options: Any) -> Tensor:
    """A matrix with ones on its diagonal; the options are those of zeros."""
    kind, where, rest = _options("eye", options)
    kind = kind or _settings.current().dtype
    return _finished(of_array(np.eye(n, n if m is None else m), kind, where), rest, EYE)


def zeros_like(input: Tensor, **options: Any) -> Tensor:
    """Zeros of the tensor's shape, dtype and device; the options are those of zeros."""
    return zeros(input._shape, **_as(input, options))


def ones_like(input: Tensor, **options: Any) -> Tensor:
    """Ones of the tensor's shape, dtype and device; the options are those of zeros."""
    return ones(input._shape, **_as(input, options))


def empty_like(input: Tensor, **options: Any) -> Tensor:
    """What empty gives, of the tensor's shape, dtype and device; the options are those of zeros."""
    return empty(input._shape, **_as(input, options))


def full_like(input: Tensor, fill_value: Any, **options: Any) -> Tensor:
    """One value, in the tensor's shape, dtype and device; the options are those of zeros."""
    return full(input._shape, fill_value, **_as(input, options))


def _as(t: Tensor, options: dict[str, Any]) -> dict[str, Any]:
    """The options, with dtype and device as the tensor has them where they are not given."""
    given = {k: v for k, v in options.items() if v is not None or k not in ("dtype", "device")}
    return {"dtype": t.dtype, "device": t.device, **given}


def new_zeros(self: Tensor, *size: Any, **options: Any) -> Tensor:
    """zeros() of the tensor's dtype and device."""
    return zeros(*size, **_as(self, options))


def new_ones(self: Tensor, *size: Any, **options: Any) -> Tensor:
    """ones() of the tensor's dtype and device."""
    return ones(*size, **_as(self, options))


def new_empty(self: Tensor, *size: Any, **options: Any) -> Tensor:
    """empty() of the tensor's dtype and device."""
    return empty(*size, **_as(self, options))


def new_full(self: Tensor, size: Any, fill_value: Any, **options: Any) -> Tensor:
    """full() of the tensor's dtype and device."""
    return full(size, fill_value, **_as(self, options))


def new_tensor(self: Tensor, data: Any, **options: Any) -> Tensor:
    """tensor() of the tensor's dtype and device."""
    return tensor(data, **_as(self, options))


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
    kind, where, rest = _options("arange", options)
    whole = builtins.all(isinstance(b, int) for b in (first, last, by))
    n = max(-((first - last) // by), 0) if whole else math.ceil((last - first) / by)
    values = first + np.arange(n) * by
    return _finished(
        of_array(values, kind or (dtypes.int64 if whole else _settings.current().dtype), where), rest, ARANGE
    )


def _bounds(bounds: tuple[Any, ...], step: Any) -> tuple[Any, Any, Any]:
    if not 1 <= len(bounds) <= 3:
        raise TypeError(f"arange() takes from 1 to 3 numbers, not {len(bounds)}")
    first, last = (0, bounds[0]) if len(bounds) == 1 else bounds[:2]
    by = bounds[2] if len(bounds) == 3 else step
    if by == 0:
        raise RuntimeError("step must be nonzero")
    if not (math.isfinite(first) and math.isfinite(last)):
        raise RuntimeError(f"unsupported range: {first} -> {last}")
    if (last - first) * by < 0:
        raise RuntimeError(f"upper bound and lower bound inconsistent with step sign: {first} to {last} by {by}")
    return first, last, by


def linspace(start: Any, end: Any, steps: int, **options: Any) -> Tensor:
    """So many numbers from start to end, with both, at equal distances; the options are those of zeros."""
    kind, where, rest = _options("linspace", options)
    kind = kind or _settings.current().dtype
    return _finished(of_array(_spread(float(start), float(end), steps, kind), kind, where), rest, LINSPACE)


def logspace(start: Any, end: Any, steps: int, base: float = 10.0, **options: Any) -> Tensor:
    """The powers of base with the exponents of linspace."""
    kind, where, rest = _options("logspace", options)
    kind = kind or _settings.current().dtype
    exponents = _spread(float(start), float(end), steps, kind)
    return _finished(of_array(np.power(base, exponents), kind, where), rest, LINSPACE)


def _spread(start: float, end: float, steps: int, kind: dtypes.dtype) -> np.ndarray:
    """Calculated from the nearer end, so that both are met."""
    if steps < 0:
        raise RuntimeError(f"number of steps must be non-negative, not {steps}")
    number: Any = np.float32 if kind.numpy == np.float32 else np.float64
    step = number((end - start) / (steps - 1)) if steps > 1 else number(0)
    i = np.arange(steps)
    up, down = number(start) + step * i.astype(number), number(end) - step * (steps - 1 - i).astype(number)
    return np.where(i < steps / 2, up, down) if steps > 1 else up


# -- of data


def tensor(data: Any, dtype: Any = None, device: Any = None, **options: Any) -> Tensor:
    """A tensor of the data (numbers, nested lists, an array, a tensor), which is copied.

    Python's floats become the default dtype unless dtype says otherwise. The other options are those of zeros.
    """
    kind, where, rest = _options("tensor", {"dtype": dtype, "device": device, **options})
    if isinstance(data, Tensor):
        where = data.device if device is None else where
        array = data._read()
        kind = kind or data.dtype
    else:
        array = _array_of(data)
        kind = kind or _natural(array, data)
        if not isinstance(data, np.ndarray | np.generic):
            _check_range(array, kind)
    t = of_array(array, kind, where)
    if where.is_sip:
        launch_copy(t, to_host=False)
    return _finished(t, rest)


def _array_of(data: Any) -> np.ndarray:
    if isinstance(data, np.ndarray):
        return data
    if isinstance(data, list | tuple) and _holds_tensor(data):
        data = _without_tensors(data)
    try:
        array = np.asarray(data)
    except ValueError as error:
        raise ValueError(f"expected sequences of equal length at every depth: {error}") from None
    if array.dtype == object and any(x is None for x in array.flat):
        raise RuntimeError("Could not infer dtype of NoneType")
    if array.dtype == object and array.size and builtins.all(isinstance(x, int) for x in array.flat):
        raise ValueError("Overflow when unpacking long long: an integer has more than 64 bits")
    return array


def _check_range(array: np.ndarray, kind: dtypes.dtype) -> None:
    """Raises:
    RuntimeError: an integer does not fit the integer dtype.
    """
    if array.dtype != np.int64 or kind.category is not dtypes.Category.INTEGER or kind is dtypes.int64:
        return
    limits = np.iinfo(kind.numpy)
    if array.size and not (limits.min <= array.min() and array.max() <= limits.max):
        raise RuntimeError(f"value cannot be converted to type {kind.name} without overflow")


def _holds_tensor(data: Any) -> bool:
    return isinstance(data, Tensor) or (isinstance(data, list | tuple) and builtins.any(map(_holds_tensor, data)))


def _without_tensors(data: Any) -> Any:
    if isinstance(data, Tensor):
        data.wait()
        return (
            data.tolist() if data.dtype.category is not dtypes.Category.FLOAT else data._read().astype(float).tolist()
        )
    return [_without_tensors(d) for d in data] if isinstance(data, list | tuple) else data


def _natural(array: np.ndarray, data: Any) -> dtypes.dtype:
    """The dtype of a tensor of the data: the default one for Python's floats and for nothing at all."""
    if isinstance(data, np.ndarray | np.generic):
        return dtypes.of_numpy(array)
    if array.dtype == np.float64 and not isinstance(_leaf(data), np.float64):
        return _settings.current().dtype
    return dtypes.of_numpy(array)


def _leaf(data: Any) -> Any:
    while isinstance(data, list | tuple) and data:
        data = data[0]
    return data


def as_tensor(data: Any, dtype: Any = None, device: Any = None) -> Tensor:
    """A tensor of the data, which shares the memory of a tensor or array where dtype and device allow it."""
    if isinstance(data, np.ndarray) and data.flags.writeable and builtins.all(s >= 0 for s in data.strides):
        data = from_numpy(data)
    if not isinstance(data, Tensor):
        return tensor(data, dtype=dtype, device=device)
    cast = data if dtype is None else data.to(dtypes.parse(dtype))
    return cast if device is None else moved(cast, _settings.resolved(device))


def asarray(obj: Any, *, dtype: Any = None, device: Any = None, copy: bool | None = None) -> Tensor:
    """as_tensor, or tensor with copy=True."""
    return tensor(obj, dtype=dtype, device=device) if copy else as_tensor(obj, dtype=dtype, device=device)


def scalar_tensor(s: Any, **options: Any) -> Tensor:
    """A tensor without dimensions, of the default dtype."""
    return full((), s, **{"dtype": _settings.current().dtype, **options})


def from_numpy(array: np.ndarray) -> Tensor:
    """A tensor that shares the array's memory. A read-only array is copied, for a tensor can be written.

    An operation that is pending on the tensor is seen through it and its views; neither the array nor another tensor
    made from the array waits for it.

    Raises:
        TypeError: not an array, or of a dtype that torch has not.
        ValueError: a stride is negative or not a multiple of the element size, or the byte order is not this machine's.
    """
    if not isinstance(array, np.ndarray):
        raise TypeError(f"expected np.ndarray (got {type(array).__name__})")
    kind = dtypes.of_numpy(array)
    if not array.flags.writeable:
        array = array.copy()
    if builtins.any(s < 0 or s % kind.itemsize for s in array.strides):
        raise ValueError(
            "from_numpy needs strides that are multiples of the element size and not negative; copy() first"
        )
    return adopted(_runtime.current().world, array, kind, _settings.resolved(None))


def frombuffer(buffer: Any, *, dtype: Any, count: int = -1, offset: int = 0) -> Tensor:
    """A tensor over the memory of an object with a buffer, from an offset in bytes on."""
    kind = dtypes.parse(dtype)
    if offset < 0 or offset >= max(memoryview(buffer).nbytes, 1):
        raise ValueError(f"offset must be non-negative and no greater than buffer length, not {offset}")
    return from_numpy(np.frombuffer(buffer, kind.numpy, count, offset))


def from_dlpack(ext_tensor: Any) -> Tensor:
    """A tensor that shares the memory of an object with __dlpack__."""
    return from_numpy(np.from_dlpack(ext_tensor))


def legacy(cls: type[Tensor], args: tuple[Any, ...], device: Any, kind: dtypes.dtype | None = None) -> Tensor:
    """What Tensor(…) is: of a shape, or of data; of the default dtype, or another."""
    kind = kind or _settings.current().dtype
    if len(args) == 1 and isinstance(args[0], Tensor):
        t = detach(args[0])
    elif len(args) == 1 and not isinstance(args[0], int | np.integer | Size):
        t = tensor(args[0], dtype=kind, device=device)
    else:
        t = zeros(*(args or (0,)), dtype=kind, device=device)
    t.__class__ = cls
    return t


# -- from copies


def restored(cls: type[Tensor], array: np.ndarray, where: Device) -> Tensor:
    """What pickle makes a tensor of again."""
    t = of_array(array, dtypes.of_numpy(array), _settings.resolved(where))
    t.__class__ = cls
    return t


def deep_copy(t: Tensor, memo: dict[int, Any]) -> Tensor:
    """What copy.deepcopy makes of a tensor: tensors that share memory do so afterwards."""
    known = memo.get(id(t))
    if known is not None:
        return known
    copy = memo[id(t)] = object.__new__(type(t))
    storage = memo.get(id(t._storage))
    if storage is None:
        storage = memo[id(t._storage)] = t._storage.copied()
    fields = {k: v for k, v in vars(t).items() if k not in ("_array", "_core", "_storage", "grad")}
    vars(copy).update(fields, _storage=storage)
    if t.grad is not None:
        copy.grad = deep_copy(t.grad, memo)
    return copy
