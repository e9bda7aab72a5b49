"""Copies from tensor to tensor: to other dtypes and devices, and into existing tensors."""

# ruff: noqa: A002 (names are PyTorch's)

from __future__ import annotations

import functools
import warnings
from typing import Any

import numpy as np

from torchemu import dtypes, runtime
from torchemu.bridge.binding import go
from torchemu.frontends.numpy import _settings
from torchemu.frontends.numpy._autograd import record
from torchemu.frontends.numpy._autograd.variable import Versions, version_of
from torchemu.frontends.numpy._device import device
from torchemu.frontends.numpy._tensor import deferral, dispatch, memory_uses
from torchemu.frontends.numpy._tensor.conversion import check_number, converted, quietly
from torchemu.frontends.numpy._tensor.core import Tensor, adopted, method
from torchemu.frontends.numpy._tensor.kernels import launch_copy
from torchemu.frontends.numpy._tensor.storage import SMALL
from torchemu.frontends.numpy._tensor.views import CLONE, detach, order_of
from torchemu.runtime.buffer import copied_afar

TO = dispatch.Op("to", converted, dispatch.no_flops)
COPY = dispatch.Op("copy_", np.copyto, dispatch.no_flops)
FILL = dispatch.Op("fill_", np.copyto, dispatch.no_flops)


def cast(input: Tensor, kind: dtypes.dtype) -> Tensor:
    """The elements as another dtype; the tensor itself if it has that one."""
    if input.dtype is kind:
        return input
    _warn_of_lost_parts(input, kind)
    return dispatch._op(TO, (input,), kind.numpy, kind=kind)


def _warn_of_lost_parts(source: Tensor, kind: dtypes.dtype) -> None:
    if source.dtype.is_complex and kind.category < dtypes.Category.COMPLEX and kind is not dtypes.bool_:
        warnings.warn("Casting complex values to real discards the imaginary part", UserWarning, stacklevel=3)


@method
def to(
    input: Tensor,
    *target: Any,
    device: Any = None,
    dtype: Any = None,
    non_blocking: bool = False,
    copy: bool = False,
    memory_format: Any = None,
) -> Tensor:
    """The tensor on another device or with another dtype, or as another tensor is; itself if it is so already.

    Args:
        input: the tensor.
        target: a dtype, a device, a device and a dtype, or a tensor; then non_blocking and copy.
        device, dtype: the same by name.
        non_blocking: do not wait for a copy to the host: then whoever looks at it does.
        copy: make a copy in any case.
        memory_format: means nothing: elements stay in row-major order, also with torch.channels_last.
    """
    where, kind, flags = _target(target)
    where = where if device is None else device
    kind = kind if dtype is None else dtypes.parse(dtype)
    copy = copy or (len(flags) > 1 and flags[1])
    result = cast(input, kind) if kind is not None else input
    if where is not None:
        result = moved(result, _settings.resolved(where), non_blocking or bool(flags and flags[0]))
    return dispatch._op(CLONE, (result,), "C") if copy and result is input else result


def _target(target: tuple[Any, ...]) -> tuple[Any, dtypes.dtype | None, tuple[Any, ...]]:
    """The device, the dtype and what comes behind them."""
    if not target:
        return None, None, ()
    first, *rest = target
    if isinstance(first, Tensor):
        return first.device, first.dtype, tuple(rest)
    if isinstance(first, dtypes.dtype) or (isinstance(first, type) and first in (bool, int, float, complex)):
        return None, dtypes.parse(first), tuple(rest)
    if rest and (rest[0] is None or isinstance(rest[0], dtypes.dtype)):
        return first, rest[0], tuple(rest[1:])
    return first, None, tuple(rest)


def moved(t: Tensor, where: device, non_blocking: bool = False) -> Tensor:
    """The tensor on a device; itself if it is there already. The host waits for what comes to its memory."""
    if t.device == where:
        return t
    if t.world.watches:
        memory_uses.touch(TO.name, (t,), (), waits=where.is_host and not non_blocking)
    if where.is_host and not non_blocking:
        t.wait()
    copy = _elsewhere(t, where, wait=where.is_host and not non_blocking)
    if t._storage.tracked:
        record.record(TO, (copy,), (t,), ())
    if not t.device.is_host and not where.is_host:
        dispatch._done(CLONE, (copy,), (t,), ())
        return copy
    launch_copy(copy, to_host=where.is_host)
    if where.is_host and not non_blocking:
        copy.wait()
    elif non_blocking and t.world.watches:
        memory_uses.came(TO.name, copy)
    return copy


def _elsewhere(t: Tensor, where: device, wait: bool) -> Tensor:
    """A tensor with the same elements on a device. Without wait they may come there later."""
    if wait or not t._storage.unsettled or t._settles():
        return adopted(t._storage.world, np.array(t._read(), order=order_of(t)), t.dtype, where)
    copy = adopted(t._storage.world, _blank(t), t.dtype, where)

    given, into = deferral.known_later((t,)), deferral.elements(copy)
    deferral.put_off("a copy", lambda: np.copyto(into, *deferral.found(given)), given, (copy,))
    return copy


def _blank(t: Tensor) -> np.ndarray:
    """Makes an array for a copy of a tensor, in whose memory the elements have its order."""
    axes = [*range(len(t._shape))]
    if t._strides is not None and order_of(t) == "K":
        steps = t._strides
        axes.sort(key=lambda axis: -steps[axis])
    return np.empty([t._shape[axis] for axis in axes], t.dtype.numpy).transpose(np.argsort(axes))


@method
def cuda(input: Tensor, device: Any = None, non_blocking: bool = False) -> Tensor:
    """The tensor on a SIP: the current one, or the one given."""
    return moved(input, _settings.resolved("cuda" if device is None else device), non_blocking)


@method
def cpu(input: Tensor) -> Tensor:
    """The tensor in the host's memory, once it is there."""
    return moved(input, _settings.resolved("cpu"))


@method
def type_as(input: Tensor, other: Tensor) -> Tensor:
    """The elements as other's dtype."""
    return cast(input, other.dtype)


# -- into existing tensors


@method
def copy_(input: Tensor, src: Any, non_blocking: bool = False) -> Tensor:
    """Replaces the elements by src's, converted and broadcast.

    The host waits for nothing: the copy takes its turn behind the operations that are pending on the two.

    Raises:
        TypeError: src is neither a tensor nor a number.
        RuntimeError: the shapes do not fit, or src is of another World.
    """
    if not isinstance(src, Tensor):
        if isinstance(src, dtypes.NUMBERS):
            return fill_(input, src)
        raise TypeError(f"copy_(): argument 'other' (position 1) must be Tensor, not {type(src).__name__}")
    if src.world is not input.world:
        raise RuntimeError("copy_(): the tensors belong to different Worlds; copy through numpy()")
    dispatch.check_writable(input)
    _check_expandable(input, src)
    if copied_afar(input, src):
        return input
    _warn_of_lost_parts(src, input.dtype)
    is_known = not src._storage.unsettled or src._settles()
    call = None
    if input._storage.tracked or src._storage.tracked:
        call = record.before_write(COPY, input, (input, src), ())
    if is_known:
        _copied(input, src)
    else:
        dispatch.written_later(COPY, (input,), (src,), functools.partial(quietly, _assign))
    dispatch.written(input, call)
    return input


def _copied(input: Tensor, src: Tensor) -> None:
    if not input._storage.has_settled(input, writes=True):
        if input.world.watches:
            memory_uses.touch(COPY.name, (src,), (input,))
        go.CopyTensor(runtime.current().rank, input._handle, src._number)
        return
    if _in_python(input, src):
        quietly(_assign, input._write(), src._read())
    else:
        input._storage.take_back()
        go.CopyTensor(runtime.current().rank, input._number, src._number)
    dispatch._done(COPY, (input,), (src,), ())


def _in_python(target: Tensor, src: Tensor) -> bool:
    """Reports whether NumPy is to copy: the core does it faster where there is much to convert, and can let equal
    contents share memory that NumPy has not looked at."""
    return target._storage.stays and (target.dtype is src.dtype or target.nbytes <= SMALL)


def _assign(array: np.ndarray, source: np.ndarray) -> None:
    lead = source.ndim - array.ndim
    source = converted(source, array.dtype)
    np.copyto(array, source.reshape(source.shape[lead:]) if lead > 0 else source)


def _check_expandable(target: Tensor, src: Tensor) -> None:
    """Raises:
    RuntimeError: src's shape does not broadcast to the target's.
    """
    to_shape, from_shape = target._shape, src._shape
    for back in range(1, len(from_shape) + 1):
        n = from_shape[-back]
        m = to_shape[-back] if back <= len(to_shape) else 1
        if n not in (m, 1):
            raise RuntimeError(
                f"The size of tensor a ({m}) must match the size of tensor b ({n}) at non-singleton dimension "
                f"{max(len(to_shape) - back, 0)}: cannot copy a tensor of shape {list(from_shape)} into one of shape "
                f"{list(to_shape)}"
            )
    if len(from_shape) > len(to_shape):
        raise RuntimeError(f"output with shape {list(to_shape)} doesn't match the broadcast shape {list(from_shape)}")


@method
def fill_(input: Tensor, value: Any) -> Tensor:
    """Makes every element the value, converted as copy_ does.

    Raises:
        TypeError: the value is no number.
        RuntimeError: it is a tensor with dimensions, an integer of more than 64 bits, or complex where the tensor is
            real.
    """
    if isinstance(value, Tensor):
        if value._shape:
            raise RuntimeError(
                f"fill_ only supports 0-dimension value tensor but got tensor with {len(value._shape)} dimensions."
            )
        return copy_(input, value)
    check_number(value, input.dtype)
    number = quietly(converted, scalar(value, "fill_"), input.dtype.numpy)
    afar = input._storage.beside is not None  # a copy to there is of as many elements
    if not afar and not input._storage.has_settled(input, writes=True):
        return copy_(input, adopted(input.world, number, input.dtype, input.device))
    if not afar and input._storage.stays:
        dispatch._op_in_place(FILL, input, (), number)
        return input
    full = adopted(input.world, np.full(input._shape, number), input.dtype, input.device)
    return copy_(input, full)


def scalar(value: Any, function: str) -> np.ndarray:
    """A number as an array without dimensions.

    Raises:
        TypeError: it is none.
        RuntimeError: it is an integer of more than 64 bits.
    """
    if not isinstance(value, dtypes.NUMBERS):
        raise TypeError(f"{function}(): argument 'value' must be a number or a Tensor, not {type(value).__name__}")
    array = np.asarray(value)
    if array.dtype.hasobject:
        raise RuntimeError(f"{function}(): {value} has more than 64 bits")
    return array


@method
def zero_(input: Tensor) -> Tensor:
    """Makes every element zero."""
    return fill_(input, 0)


def set_data(input: Tensor, other: Tensor) -> None:
    """``input.data = other``: gives the tensor other's memory, shape and dtype. Its history and gradient stay."""
    if other._storage is not input._storage:
        input._versions = Versions(version_of(input))
    for field in ("_storage", "_shape", "_strides", "_offset", "_array", "_core", "dtype", "device"):
        setattr(input, field, getattr(other, field))
    input._storage.tracked |= input._autograd is not None


def data(input: Tensor) -> Tensor:
    """``input.data``: the tensor without its gradients. Writes into it are not noticed by those."""
    t = detach(input)
    t._versions = Versions(0)
    t._storage.tracked = True  # so that views of it count their writes there too
    return t
