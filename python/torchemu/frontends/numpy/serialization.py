"""torch.save and torch.load: pickled objects, in which tensors that share memory share it again.

The files are of this front end's own; those of PyTorch are read and written with ``--torch real``.
"""

from __future__ import annotations

import functools
import importlib
import os
import pickle
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO

import numpy as np

from torchemu import dtypes, runtime
from torchemu.frontends.numpy import _settings
from torchemu.frontends.numpy._device import device
from torchemu.frontends.numpy._shape import Size
from torchemu.frontends.numpy._tensor.core import Tensor, aliased_to, all_bytes
from torchemu.frontends.numpy._tensor.storage import Storage
from torchemu.frontends.numpy.front_end import FRONT_END

__all__ = ["load", "save"]

File = str | os.PathLike[str] | BinaryIO

_MARK = b"torchemu tensors 1\n"
"""The first bytes of a file."""

_HARMLESS = {
    ("collections", "OrderedDict"),
    ("collections", "Counter"),
    ("collections", "defaultdict"),
    ("builtins", "set"),
    ("builtins", "frozenset"),
    ("builtins", "slice"),
    ("builtins", "complex"),
    ("builtins", "bytearray"),
    ("_codecs", "encode"),
}


@contextmanager
def _opened(f: File, mode: str) -> Iterator[Any]:
    if isinstance(f, str | os.PathLike):
        with open(f, mode) as file:
            yield file
    else:
        yield f


class _Pickler(pickle.Pickler):
    """Writes tensors as views of storages. One storage is written once."""

    def reducer_override(self, obj: Any) -> Any:
        """Returns how tensors and what belongs to them are written."""
        if isinstance(obj, Tensor):
            obj.wait()
            form = (obj.dtype, obj.device, tuple(obj._shape), tuple(obj._steps()), obj._offset)
            return _tensor, (obj._storage, *form, obj.requires_grad, _is_parameter(obj))
        if isinstance(obj, Storage):
            return _storage, (all_bytes(obj)._read().tobytes(),)
        return NotImplemented

    def persistent_id(self, obj: Any) -> str | None:
        """Returns what is written instead of a function or class of ours, whose module has two names."""
        return next((name for name, own in _OWN.items() if own is obj), None)


def _is_parameter(t: Tensor) -> bool:
    from torchemu.frontends.numpy.nn.parameter import Parameter  # which is made of tensors

    return isinstance(t, Parameter)


def save(obj: Any, f: File) -> None:
    """Writes an object, with all tensors in it, to a file, which load reads.

    Args:
        obj: what pickle can write: tensors, numbers, texts, containers of such, …
        f: a path, or a file open for writing.
    """
    with _opened(f, "wb") as file:
        file.write(_MARK)
        _Pickler(file).dump(obj)


class _Unpickler(pickle.Unpickler):
    """Reads what save wrote.

    Args:
        file: where the object begins.
        place: says, for the device that a tensor was on, where it is to be.
        only_weights: refuse to call anything that does not belong to tensors and containers.
    """

    def __init__(self, file: BinaryIO, place: Callable[[device], device], only_weights: bool) -> None:
        super().__init__(file)
        self._only_weights = only_weights
        self._own = {**_OWN, "tensor": functools.partial(_tensor, place=place)}

    def persistent_load(self, pid: str) -> Any:
        """Returns our function or class that is written so."""
        return self._own[pid]

    def find_class(self, module: str, name: str) -> Any:
        """Returns what a name in the file stands for."""
        if self._only_weights and (module, name) not in _HARMLESS:
            raise pickle.UnpicklingError(
                f"Weights only load failed. The file wants to call {module}.{name}, which may do anything. If you "
                "trust the file, use torch.load(..., weights_only=False)."
            )
        if module == "torch" or module.startswith("torch."):
            return getattr(importlib.import_module(FRONT_END.module(module) or module), name)
        return super().find_class(module, name)


def _storage(contents: bytes) -> Storage:
    return Storage(runtime.current().world, np.frombuffer(bytearray(contents), np.uint8), len(contents))


def _tensor(
    storage: Storage,
    kind: dtypes.dtype,
    saved: device,
    shape: tuple[int, ...],
    steps: tuple[int, ...],
    offset: int,
    requires_grad: bool,
    is_parameter: bool,
    place: Callable[[device], device] = lambda saved: saved,
) -> Tensor:
    t = aliased_to(storage, kind, place(saved), shape, steps, offset)
    if not is_parameter:
        return t.requires_grad_(requires_grad)
    from torchemu.frontends.numpy.nn.parameter import Parameter

    return Parameter(t, requires_grad)


_OWN = {"tensor": _tensor, "storage": _storage, "size": Size, "device": device, "dtype": dtypes.parse}
"""The functions and classes that files are read by, under the names that they have in them."""


def load(f: File, map_location: Any = None, *, weights_only: bool = True) -> Any:
    """Reads what save has written.

    Args:
        f: a path, or a file open for reading.
        map_location: the device for all tensors; a mapping from device names to such; or a function of None and a
            device's name that returns a device, or None for that one. None: the device that each was on.
        weights_only: refuse files that call anything but what tensors and containers need.

    Raises:
        FileNotFoundError: there is no such file.
        RuntimeError: it is not a file of this front end's torch.save.
        pickle.UnpicklingError: weights_only, and the file calls something else.
    """
    with _opened(f, "rb") as file:
        if file.read(len(_MARK)) != _MARK:
            raise RuntimeError(
                f"{f}: this is no file of torch.save of torchemu's NumPy front end; those of PyTorch are read with "
                "--torch real"
            )
        return _Unpickler(file, lambda saved: _mapped(map_location, saved), weights_only).load()


def _mapped(map_location: Any, saved: device) -> device:
    """The device for tensors that were on the one saved."""
    name = "cpu" if saved.is_host else f"cuda:{saved.index}"
    target = map_location
    if isinstance(map_location, dict):
        target = map_location.get(name)
    elif callable(map_location):
        target = map_location(None, name)
    return _settings.resolved(saved if target is None else target)
