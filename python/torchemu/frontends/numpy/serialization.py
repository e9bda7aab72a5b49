"""torch.save and torch.load: files of PyTorch's own format, which PyTorch reads too.

A file is a ZIP archive, nothing in it compressed. ``data.pkl`` is the object, pickled, in which a tensor is a call of
torch._utils._rebuild_tensor_v2 with a storage; the storages' bytes are in ``data/0``, ``data/1``, …
"""

from __future__ import annotations

import collections
import importlib
import io
import os
import pickle
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO, ClassVar

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

_TITLES = {
    "complex128": "ComplexDouble",
    "complex64": "ComplexFloat",
    "float64": "Double",
    "float32": "Float",
    "float16": "Half",
    "bfloat16": "BFloat16",
    "int64": "Long",
    "int32": "Int",
    "int16": "Short",
    "int8": "Char",
    "uint8": "Byte",
    "bool": "Bool",
}
"""What PyTorch's classes of storages begin with; other dtypes are in untyped ones."""

_KINDS = {f"{title}Storage": dtypes.parse(name) for name, title in _TITLES.items()}
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


# -- writing


class _Name:
    """A function or class of PyTorch, which is written by its name."""

    def __init__(self, module: str, name: str) -> None:
        self.module, self.name = module, name

    def __call__(self) -> None:
        """Only to be written."""


_NAMES: dict[str, _Name] = {}


def _named(module: str, name: str) -> _Name:
    return _NAMES.setdefault(f"{module}.{name}", _Name(module, name))


class _Stored:
    """A storage to be written, as elements of a dtype, from a device."""

    def __init__(self, storage: Storage, kind: dtypes.dtype, place: device) -> None:
        self.storage, self.kind, self.place = storage, kind, place


_PythonPickler: Any = pickle._Pickler


class _Pickler(_PythonPickler):
    """Writes tensors as PyTorch does, and collects their storages. (The pickler in C writes only names that it can
    import.)"""

    dispatch: ClassVar[dict[type, Any]] = dict(_PythonPickler.dispatch)

    def __init__(self, file: io.BytesIO, protocol: int) -> None:
        super().__init__(file, protocol)
        self.storages: dict[int, tuple[str, Storage, str | None]] = {}

    def save(self, obj: Any, save_persistent_id: bool = True) -> None:
        """Writes an object."""
        super().save(_named("torch", obj.name) if isinstance(obj, dtypes.dtype) else obj, save_persistent_id)

    def save_name(self, obj: _Name) -> None:
        """Writes a name."""
        self.write(pickle.GLOBAL + f"{obj.module}\n{obj.name}\n".encode())
        self.memoize(obj)

    dispatch[_Name] = save_name

    def persistent_id(self, obj: Any) -> Any:
        """Returns what is written instead of a storage."""
        if not isinstance(obj, _Stored):
            return None
        title = _TITLES.get(obj.kind.name)
        new = str(len(self.storages)), obj.storage, title
        key, storage, known = self.storages.setdefault(id(obj.storage), new)
        if title != known:
            raise RuntimeError("Cannot save multiple tensors or storages that view the same data as different types")
        place = "cpu" if obj.place.is_host else f"cuda:{obj.place.index}"
        name = _named("torch", f"{title}Storage") if title else _named("torch.storage", "UntypedStorage")
        return "storage", name, key, place, storage.nbytes // (obj.kind.itemsize if title else 1)

    def reducer_override(self, obj: Any) -> Any:
        """Returns how objects of torchemu are written: as what they are in PyTorch."""
        if isinstance(obj, Tensor):
            return _reduced(obj)
        if isinstance(obj, Size):
            return _named("torch", "Size"), (tuple(obj),)
        if isinstance(obj, device):
            kind = "cpu" if obj.is_host else "cuda"
            return _named("torch", "device"), (kind,) if obj.index is None else (kind, obj.index)
        return NotImplemented


def _reduced(t: Tensor) -> tuple[_Name, tuple[Any, ...]]:
    from torchemu.frontends.numpy.nn.parameter import (
        Parameter,  # which is made of the tensors that files can be read into
    )

    if isinstance(t, Parameter):
        return _named("torch._utils", "_rebuild_parameter"), (t.data, t.requires_grad, collections.OrderedDict())
    t.wait()
    stored = _Stored(t._storage, t.dtype, t.device)
    place = (stored, t._offset, tuple(t._shape), tuple(t._steps()))
    about: tuple[Any, ...] = (*place, t.requires_grad, collections.OrderedDict())
    if t.dtype.name in _TITLES:
        return _named("torch._utils", "_rebuild_tensor_v2"), about
    return _named("torch._utils", "_rebuild_tensor_v3"), (*about, t.dtype)


def save(
    obj: Any,
    f: File,
    pickle_module: Any = None,
    pickle_protocol: int = 2,
    _use_new_zipfile_serialization: bool = True,
) -> None:
    """Writes an object, with all tensors in it, to a file; load reads it, and so does PyTorch.

    Args:
        obj: what pickle can write: tensors, numbers, texts, containers of such, …
        f: a path, or a file open for writing.
        pickle_module: means nothing here.
        pickle_protocol: the version of pickle's format.

    Raises:
        RuntimeError: two tensors in the same memory have different dtypes.
    """
    pickled = io.BytesIO()
    pickler = _Pickler(pickled, pickle_protocol)
    pickler.dump(obj)
    name = Path(os.fspath(f)).stem if isinstance(f, str | os.PathLike) else "archive"
    with zipfile.ZipFile(f, "w", zipfile.ZIP_STORED) as archive:
        _write(archive, f"{name}/data.pkl", pickled.getvalue())
        _write(archive, f"{name}/byteorder", b"little")
        for key, storage, _ in pickler.storages.values():
            _write(archive, f"{name}/data/{key}", all_bytes(storage)._read().tobytes())
        _write(archive, f"{name}/version", b"3\n")


def _write(archive: zipfile.ZipFile, name: str, contents: bytes) -> None:
    """The time of an entry is always the same, so that equal objects give equal files."""
    archive.writestr(zipfile.ZipInfo(name), contents)


# -- reading


class _Unpickler(pickle.Unpickler):
    """Reads what PyTorch or save wrote.

    Args:
        archive, root: the open file, and what the names in it begin with.
        place: says, for the name of a storage's device, where the tensors are to be.
        only_weights: refuse to call anything that does not belong to tensors and containers.
    """

    def __init__(
        self, archive: zipfile.ZipFile, root: str, place: Callable[[str], device], only_weights: bool, encoding: str
    ) -> None:
        super().__init__(io.BytesIO(archive.read(f"{root}/data.pkl")), encoding=encoding)
        self._archive, self._root, self._place, self._only_weights = archive, root, place, only_weights
        self._storages: dict[str, Storage] = {}

    def find_class(self, module: str, name: str) -> Any:
        """Returns what a name in the file stands for."""
        if module == "__builtin__":  # as protocol 2, for Python 2, calls it
            module = "builtins"
        if module == "torch" and name in _KINDS:
            return _KINDS[name]
        found = _REBUILT.get(f"{module}.{name}")
        if found is not None:
            return found
        if module == "torch" and any(d.name == name for d in dtypes.ALL):
            return dtypes.parse(name)
        if self._only_weights and (module, name) not in _HARMLESS:
            raise pickle.UnpicklingError(
                f"Weights only load failed. The file wants to call {module}.{name}, which may do anything. If you "
                "trust the file, use torch.load(..., weights_only=False)."
            )
        if module == "torch" or module.startswith("torch."):
            return getattr(importlib.import_module(FRONT_END.module(module) or module), name)
        return super().find_class(module, name)

    def persistent_load(self, pid: Any) -> Any:
        """The storage that is written so."""
        tag, kind, key, location, _ = pid
        if tag != "storage":
            raise pickle.UnpicklingError(f"unknown kind of persistent object: {tag!r}")
        if key not in self._storages:
            raw = np.frombuffer(bytearray(self._archive.read(f"{self._root}/data/{key}")), np.uint8)
            self._storages[key] = Storage(runtime.current().world, raw, raw.nbytes)
        return _Stored(self._storages[key], kind, self._place(location))


def _rebuilt(stored: _Stored, offset: int, size: Any, stride: Any, requires_grad: bool, *about: Any) -> Tensor:
    """A tensor of a storage; about: hooks, and for untyped storages a dtype."""
    kind = next((a for a in about if isinstance(a, dtypes.dtype)), stored.kind)
    return aliased_to(stored.storage, kind, stored.place, size, stride, offset).requires_grad_(requires_grad)


def _rebuilt_parameter(data: Tensor, requires_grad: bool, *_: Any) -> Tensor:
    from torchemu.frontends.numpy.nn.parameter import Parameter

    return Parameter(data, requires_grad)


_REBUILT: dict[str, Any] = {
    "torch._utils._rebuild_tensor_v2": _rebuilt,
    "torch._utils._rebuild_tensor_v3": _rebuilt,
    "torch._utils._rebuild_parameter": _rebuilt_parameter,
    "torch.storage.UntypedStorage": dtypes.uint8,
    "torch.Size": Size,
    "torch.device": device,
}


def load(
    f: File,
    map_location: Any = None,
    pickle_module: Any = None,
    *,
    weights_only: bool = True,
    mmap: bool | None = None,
    encoding: str = "utf-8",
) -> Any:
    """Reads what save, or PyTorch, has written.

    Args:
        f: a path, or a file open for reading.
        map_location: the device for all tensors; a mapping from device names to such; or a function of a storage
            and a device's name that returns a device, or None for that one. None: the device that each was on.
        weights_only: refuse files that call anything but what tensors and containers need.
        pickle_module, mmap: mean nothing here.
        encoding: of texts that Python 2 has written.

    Raises:
        FileNotFoundError: there is no such file.
        RuntimeError: it is not a file of torch.save, or of its format before PyTorch 1.6.
        pickle.UnpicklingError: weights_only, and the file calls something else.
    """
    try:
        archive = zipfile.ZipFile(f)
    except zipfile.BadZipFile:
        raise RuntimeError(f"{f}: this is no file of torch.save, or one of its format before PyTorch 1.6") from None
    with archive:
        pickles = [n for n in archive.namelist() if n.endswith("/data.pkl")]
        if len(pickles) != 1:
            raise RuntimeError(f"{f}: a ZIP archive, but not one of torch.save: it has no data.pkl")
        root = pickles[0].removesuffix("/data.pkl")
        return _Unpickler(archive, root, lambda place: _mapped(map_location, place), weights_only, encoding).load()


def _mapped(map_location: Any, saved: str) -> device:
    """The device for tensors that were on the one saved."""
    target = map_location
    if isinstance(map_location, dict):
        target = map_location.get(saved, saved)
    elif callable(map_location):
        target = map_location(None, saved)
        target = getattr(target, "device", target)
    return _settings.resolved(saved if target is None else target)
