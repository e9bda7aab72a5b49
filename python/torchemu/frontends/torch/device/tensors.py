"""Tensors' own words for their device, and the functions that make them from something that is no tensor."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Any

import torch
from torch.nn.parameter import UninitializedTensorMixin
from torch.utils._device import DeviceContext

from torchemu import runtime
from torchemu.frontends.torch import unwaited_uses
from torchemu.frontends.torch.device import (
    arrays,
    device_copies,
    device_program_memory,
    fakes,
    mixing,
    named,
    places,
    reading,
    storages,
    streams,
)
from torchemu.frontends.torch.device.patches import Replacements, overridable
from torchemu.frontends.torch.device.places import HOST, STATED_HOST

_base = torch._C.TensorBase
_base_is_shared = torch.Tensor.is_shared
_asking = places._asking
_raw_is_meta = _base.is_meta.__get__
_raw_device = _base.device.__get__

_FROM_DATA = ("tensor", "as_tensor", "asarray", "sparse_coo_tensor", "sparse_csr_tensor", "sparse_compressed_tensor")
"""Functions that copy elements to a device without a word to the dispatcher."""

_IN_PLACE = ("tensor", "as_tensor")
"""Functions that know memory of devices by ``__cuda_array_interface__``."""

_ALIKE = ("empty_like", "zeros_like", "ones_like", "full_like", "rand_like", "randn_like", "randint_like")

_NEW = ("new_empty", "new_empty_strided", "new_full", "new_ones", "new_zeros")


def device(self: torch.Tensor) -> torch.device:
    """Tensor.device."""
    if _asking:
        return _raw_device(self)
    try:
        where = getattr(self.untyped_storage(), "_place", None)
    except (NotImplementedError, RuntimeError):
        where = None
    if where is None:
        where = places.of_wrapper(self)
    return fakes.meant(_raw_device(self)) if where is None else where.device


_DEVICE = property(device)
_IS_META = property(lambda self: _raw_is_meta(self) and device(self).type == "meta")


def _tell_sharded_tensors() -> None:
    """Tells ShardedTensor the new properties, where it is loaded: it knows PyTorch's by their getters."""
    for name, new in (("device", _DEVICE), ("is_meta", _IS_META)):
        _tell_of(getattr(_base, name).__get__, new.__get__)


def _tell_of(original: Any, new: Any) -> None:
    """Lets ShardedTensor do with a function, where it is loaded, what it does with PyTorch's."""
    module: Any = sys.modules.get("torch.distributed._shard.sharded_tensor.api")
    known = None if module is None else module._SHARDED_OPS.get(original)
    if known is not None:
        module._SHARDED_OPS[new] = known


def _put_overridable(replaced: Replacements, owner: Any, values: dict[str, Callable[..., Any]]) -> None:
    """Puts functions in place that classes of tensors may override, as they may override PyTorch's."""
    for name, function in values.items():
        new = overridable(function, original := getattr(owner, name))
        replaced.put(owner, name, new)
        _tell_of(original, new)


def put(replaced: Replacements) -> None:
    """Puts all of it in place."""
    tensor = torch.Tensor
    _tell_sharded_tensors()
    replaced.put_all(
        tensor,
        {
            "device": _DEVICE,
            "is_cuda": property(lambda self: self.device.type == "cuda"),
            "is_cpu": property(lambda self: self.device.type == "cpu"),
            "data_ptr": storages.data_ptr,
            "is_meta": _IS_META,
            "record_stream": storages.record_stream,
            "_make_wrapper_subclass": staticmethod(_wrapper_subclass),
        },
    )
    _put_overridable(
        replaced,
        tensor,
        {
            "get_device": lambda self: -1 if self.device.index is None else self.device.index,
            "to": device_copies.to,
            "cuda": device_copies.cuda,
            "cpu": device_copies.cpu,
            "copy_": device_copies.copy_(_base.copy_),
            "type": device_copies.type_(_base.type),
            "type_as": device_copies.type_as(_base.type_as),
            "new": device_copies.new(_base.new),
            "pin_memory": _pin_memory,
            "is_pinned": _is_pinned,
            "is_shared": lambda self: places.of(self) is not None or _base_is_shared(self),
            "new_tensor": _new_tensor,
            "numpy": _looking(_numpy),
            "tolist": _looking(_tolist),
            **{name: _stating(getattr(_base, name)) for name in _NEW},
        },
    )
    mixing.put(replaced)
    moving = [getattr(tensor, name) for name in ("copy_", "cpu", "cuda", "get_device", "to", "untyped_storage")]
    lazy = UninitializedTensorMixin  # which says what can be done to parameters of lazy modules
    replaced.put(lazy, "_allowed_methods", [*lazy._allowed_methods, *moving])
    replaced.put(torch._tensor_str, "_str", _text(torch._tensor_str._str))
    replaced.put(torch, "from_dlpack", _from_dlpack(torch.from_dlpack))
    replaced.put(torch, "get_device", lambda tensor: tensor.get_device())
    _put_overridable(replaced, torch, {name: _stating(getattr(torch, name)) for name in _ALIKE})
    for name in _FROM_DATA:
        _put_from_data(replaced, name)
    replaced.put(DeviceContext, "__torch_function__", _in_context(DeviceContext.__torch_function__))


def _from_dlpack(original: Callable[..., Any]) -> Callable[..., Any]:
    """Makes a tensor of another one in the same memory, whose device the capsule between them would not know."""

    @functools.wraps(original)
    def call(ext_tensor: Any, **kwargs: Any) -> Any:
        if isinstance(ext_tensor, torch.Tensor) and not ext_tensor.requires_grad and not kwargs:
            return ext_tensor.detach()
        return original(ext_tensor, **kwargs)

    return call


def _stating(original: Callable[..., Any]) -> Callable[..., Any]:
    """Makes a function say to the dispatcher that its device is what the program says, and not C++."""

    @functools.wraps(original)
    def call(*args: Any, **kwargs: Any) -> Any:
        if (where := kwargs.get("device")) is not None:
            where = torch.device("cuda", where) if isinstance(where, int) else torch.device(where)
            kwargs["device"] = STATED_HOST if where.type == "cpu" else where
        return original(*args, **kwargs)

    return call


_moved_from_data: dict[Any, Callable[..., Any]] = {}
"""Functions that know simulated devices, by PyTorch's."""


def _put_from_data(replaced: Replacements, name: str) -> None:
    original = getattr(torch, name)

    @functools.wraps(original)
    def call(*args: Any, device: Any = None, **kwargs: Any) -> Any:
        given = args[0] if args else kwargs.get("data", kwargs.get("obj"))
        if name in _IN_PLACE and (interface := arrays.described(given)) is not None:
            given = arrays.tensor_of(interface)
            args, kwargs = (given, *args[1:]), {k: v for k, v in kwargs.items() if k not in ("data", "obj")}
            device = given.device if device is None else device
        if device is None:
            if isinstance(given, torch.Tensor) and name in ("as_tensor", "asarray", "tensor"):
                return _from_tensor(original, name, given, args, kwargs)
            return original(*args, **kwargs)
        named.note(device)
        want = places.meant(device)
        if want is None or (not places.is_simulated(want) and want.type != "cpu"):
            return original(*args, device=want, **kwargs)
        if isinstance(given, torch.Tensor):
            found = _from_tensor(original, name, given, args, kwargs)
            return found if found.device == want else _like_leaf(found, want)
        made = original(*args, device=HOST, **kwargs)
        return _like_leaf(made, want) if places.is_simulated(want) else made

    found = _pinning(call) if name == "tensor" else call
    _moved_from_data[original] = found
    replaced.put(torch, name, found)


def _pinning(make: Callable[..., Any]) -> Callable[..., Any]:
    """Makes a function pin what it makes on the host where it is told to: PyTorch would ask CUDA for the memory."""

    @functools.wraps(make)
    def call(*args: Any, pin_memory: bool = False, **kwargs: Any) -> Any:
        made = make(*args, **kwargs)
        if pin_memory and places.of(made) is None:
            made.untyped_storage()._pinned = True
        return made

    return call


def _from_tensor(original: Any, name: str, given: torch.Tensor, args: Any, kwargs: Any) -> torch.Tensor:
    """Makes a tensor of one, which may be on a device."""
    if name == "tensor":
        requires_grad = kwargs.get("requires_grad", False)
        return given.detach().to(dtype=kwargs.get("dtype") or given.dtype, copy=True).requires_grad_(requires_grad)
    found: torch.Tensor = original(*args, **kwargs)
    return found


def _like_leaf(made: torch.Tensor, want: torch.device) -> torch.Tensor:
    """Copies a new tensor to a device, where it is as new."""
    if not made.is_leaf or not made.requires_grad:
        return device_copies.to(made, want)
    return device_copies.to(made.detach(), want).requires_grad_()


def _in_context(original: Any) -> Any:
    """Makes the function mode of ``with torch.device(...)`` call the functions that know simulated devices."""

    def __torch_function__(self: Any, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:  # noqa: N807
        known = _moved_from_data.get(func)
        if known is None or (kwargs or {}).get("device") is not None:
            return original(self, func, types, args, kwargs)
        return known(*args, **{**(kwargs or {}), "device": self.device})

    return __torch_function__


def _text(original: Any) -> Any:
    """Makes the function that prints tensors, which knows such without elements."""

    def _str(self: torch.Tensor, *, tensor_contents: Any = None) -> str:
        if tensor_contents is None and _raw_is_meta(self) and places.of(self) is not None:
            tensor_contents = f"..., size={tuple(self.shape)}"
        elif runtime.running() is not None and places.of(self) is not None:
            device_program_memory.before_use([self])  # the function reads past all modes
        return str(original(self, tensor_contents=tensor_contents))

    return _str


def _new_tensor(self: torch.Tensor, data: Any, *, device: Any = None, **kwargs: Any) -> torch.Tensor:
    """Tensor.new_tensor."""
    kwargs.setdefault("dtype", None)
    if kwargs["dtype"] is None:
        kwargs["dtype"] = self.dtype
    return torch.tensor(data, device=self.device if device is None else device, **kwargs)


def _pin_memory(self: torch.Tensor, device: Any = None) -> torch.Tensor:
    """Tensor.pin_memory: a copy that says of itself that it is pinned."""
    if self.device.type != "cpu":
        is_plain = self.layout in (torch.strided, torch.sparse_coo)
        kind = self.type() if is_plain else f"SparseCsr{self.values().type()}"
        raise RuntimeError(f"cannot pin '{kind}' only dense CPU tensors can be pinned")
    return self if places.is_pinned(self) else places.pin(self.clone())


def _is_pinned(self: torch.Tensor, device: Any = None) -> bool:
    """Tensor.is_pinned."""
    return places.is_pinned(self)


def _numpy(self: torch.Tensor, *, force: bool = False) -> Any:
    """Tensor.numpy."""
    where = self.device
    if places.is_simulated(where):
        if not force:
            raise TypeError(
                f"can't convert {where} device type tensor to numpy. Use Tensor.cpu() to copy the tensor to host "
                "memory first."
            )
        return _base.numpy(self.detach().cpu().resolve_conj().resolve_neg())
    return _base.numpy(self, force=force)


def _looking(read: Callable[..., Any]) -> Callable[..., Any]:
    """Makes a method that reads elements past the dispatcher report what the rank has not waited for."""

    @functools.wraps(read)
    def call(self: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
        if runtime.running() is not None:
            unwaited_uses.look(read.__name__.strip("_"), [self], [])
        return read(self, *args, **kwargs)

    return call


def _tolist(self: torch.Tensor) -> Any:
    """Tensor.tolist."""
    if places.is_simulated(self.device):
        if _raw_is_meta(self) or device_program_memory.is_live([self]):
            return self.cpu().tolist()
        streams.refuse_while_capturing("tolist")
        reading.wait_for(self, "tolist")
    return _base.tolist(self)


def _wrapper_subclass(cls: Any, *args: Any, device: Any = None, **kwargs: Any) -> torch.Tensor:
    """Tensor._make_wrapper_subclass: autograd would start threads for a device that has no driver."""
    want = places.meant(device)
    if want is None:
        made: torch.Tensor = _base._make_wrapper_subclass(cls, *args, **kwargs)
        return made
    if not places.is_simulated(want):
        return _base._make_wrapper_subclass(cls, *args, device=want, **kwargs)
    made = _base._make_wrapper_subclass(cls, *args, device=HOST, **kwargs)
    made._place = places.found(want)
    return made
