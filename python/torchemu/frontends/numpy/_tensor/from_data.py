"""Tensors of data that are somewhere already: in Python's lists, NumPy's arrays, buffers, other tensors."""

from __future__ import annotations

import builtins
from typing import Any

import numpy as np

from torchemu import dtypes, runtime
from torchemu.frontends.numpy import _settings
from torchemu.frontends.numpy._device import device as Device  # noqa: N812 (device is an argument's name)
from torchemu.frontends.numpy._shape import Size
from torchemu.frontends.numpy._tensor.copying import moved
from torchemu.frontends.numpy._tensor.core import Tensor, adopted, all_bytes, method
from torchemu.frontends.numpy._tensor.creation import as_options, finished, of_array, options_of, zeros
from torchemu.frontends.numpy._tensor.kernels import launch_copy
from torchemu.frontends.numpy._tensor.storage import Storage
from torchemu.frontends.numpy._tensor.views import detach

__all__ = [
    "as_tensor",
    "asarray",
    "from_numpy",
    "frombuffer",
    "tensor",
]


def tensor(data: Any, dtype: Any = None, device: Any = None, **options: Any) -> Tensor:
    """A tensor of the data (numbers, nested lists, an array, a tensor), which is copied.

    Python's floats become the default dtype unless dtype says otherwise. The other options are those of zeros.
    """
    kind, where, rest = options_of("tensor", {"dtype": dtype, "device": device, **options})
    if isinstance(data, Tensor):
        where = data.device if device is None else where
        array = data._read()
        kind = kind or data.dtype
    else:
        array = _array_of(data)
        kind = kind or _natural(array, data)
        if array.dtype.kind == "c" and not isinstance(data, np.ndarray):
            _check_real(kind)
        if not isinstance(data, np.ndarray | np.generic):
            _check_range(array, kind)
    t = of_array(array, kind, where)
    if not where.is_host:
        launch_copy(t, to_host=False)
    return finished(t, rest)


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


def _check_real(kind: dtypes.dtype) -> None:
    """Raises:
    TypeError: the dtype is one of real numbers, and those that it is for are complex.
    """
    if kind.is_floating_point:
        raise TypeError("must be real number, not complex")
    if kind.category is dtypes.Category.INTEGER:
        raise TypeError("'complex' object cannot be interpreted as an integer")


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
    """The dtype of a tensor of the data: the default one for Python's floats and for nothing at all, and for Python's
    complex numbers that with such parts."""
    if isinstance(data, np.ndarray | np.generic):
        return dtypes.of_numpy(array)
    if array.dtype == np.float64 and not isinstance(_leaf(data), np.float64):
        return _settings.current().dtype
    if array.dtype == np.complex128 and not isinstance(_leaf(data), np.complex128):
        return _settings.current().dtype.to_complex()
    return dtypes.of_numpy(array)


def _leaf(data: Any) -> Any:
    while isinstance(data, list | tuple) and data:
        data = data[0]
    return data


@method
def new_tensor(self: Tensor, data: Any, **options: Any) -> Tensor:
    """tensor() of the tensor's dtype and device."""
    return tensor(data, **as_options(self, options))


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
    return adopted(runtime.current().world, array, kind, _settings.resolved(None))


def frombuffer(buffer: Any, *, dtype: Any, count: int = -1, offset: int = 0) -> Tensor:
    """A tensor over the memory of an object with a buffer, from an offset in bytes on."""
    kind = dtypes.parse(dtype)
    if offset < 0 or offset >= max(memoryview(buffer).nbytes, 1):
        raise ValueError(f"offset must be non-negative and no greater than buffer length, not {offset}")
    return from_numpy(np.frombuffer(buffer, kind.numpy, count, offset))


def legacy(cls: type[Tensor], args: tuple[Any, ...], device: Any) -> Tensor:
    """Returns what Tensor(…) is: of a shape, or of data; of the default dtype."""
    kind = _settings.current().dtype
    if len(args) == 1 and isinstance(args[0], Tensor):
        t = detach(args[0])
    elif len(args) == 1 and not isinstance(args[0], int | np.integer | Size):
        t = tensor(args[0], dtype=kind, device=device)
    else:
        t = zeros(*(args or (0,)), dtype=kind, device=device)
    t.__class__ = cls
    return t


# -- from copies


def restored(cls: type[Tensor], array: np.ndarray, where: Device, requires_grad: bool = False) -> Tensor:
    """Returns what pickle makes a tensor of again."""
    t = of_array(array, dtypes.of_numpy(array), _settings.resolved(where))
    t.__class__ = cls
    return t.requires_grad_(requires_grad)


_NOT_COPIED = ("_array", "_core", "_storage", "_autograd", "_base", "_versions")


def _copied(storage: Storage) -> Storage:
    raw = all_bytes(storage)._read()
    return Storage(storage.world, np.frombuffer(bytearray(raw), np.uint8), storage.nbytes)


def deep_copy(t: Tensor, memo: dict[int, Any]) -> Tensor:
    """Returns what copy.deepcopy makes of a tensor: tensors that share memory do so afterwards."""
    known = memo.get(id(t))
    if known is not None:
        return known
    if t.grad_fn is not None:
        raise RuntimeError(
            "Only Tensors created explicitly by the user (graph leaves) support the deepcopy protocol at the moment.  "
            "If you were attempting to deepcopy a module, this may be because of a torch.nn.utils.weight_norm usage, "
            "see https://github.com/pytorch/pytorch/pull/103001"
        )
    copy = memo[id(t)] = object.__new__(type(t))
    storage = memo.get(id(t._storage))
    if storage is None:
        storage = memo[id(t._storage)] = _copied(t._storage)
    fields = {k: v for k, v in vars(t).items() if k not in _NOT_COPIED}
    vars(copy).update(fields, _storage=storage)
    if t.requires_grad:
        copy.requires_grad_()
    if t.grad is not None:
        copy.grad = deep_copy(t.grad, memo)
    return copy
