"""Tensors that a thread makes on devices have elements or none; here they come to have them, and lose them.

PyTorch keeps the elements of CPU and CUDA tensors behind the same C++ type, and meta tensors behind another one, to
which ``tensor.data = other`` does not lead. In runs without data tensors of devices are meta tensors, and programs move
parameters between the host and devices that way.
"""

from __future__ import annotations

import contextlib
import pickle
import threading
import weakref
from collections.abc import Callable, Iterator
from typing import Any, NoReturn

import torch
from torch.autograd.graph import get_gradient_edge

from torchemu.frontends.torch.device import places

_base = torch._C.TensorBase
_data = _base.data
_is_meta = _base.is_meta.__get__


class _Thread(threading.local):
    are_made = True
    depth = 0


_thread = _Thread()  # each is one rank's


def make(data: bool) -> None:
    """Makes tensors of devices, on the calling thread, come with elements or without."""
    _thread.are_made = data


def are_made() -> bool:
    """Says whether tensors that the calling thread makes on devices have elements."""
    return _thread.are_made or _thread.depth > 0


@contextlib.contextmanager
def kept() -> Iterator[None]:
    """Gives tensors of devices elements also in runs without data."""
    _thread.depth += 1
    try:
        yield
    finally:
        _thread.depth -= 1


class Unpickler(pickle.Unpickler):
    """An unpickler of objects that ranks send each other: the tensors in them are like those of the program."""

    def load(self) -> Any:
        """Returns the object."""
        depth, _thread.depth = _thread.depth, 0
        try:
            return super().load()
        finally:
            _thread.depth = depth


def are_kept() -> bool:
    """Says whether the calling thread is inside of kept, where tensors have elements that would have none."""
    return _thread.depth > 0


def set_data(tensor: torch.Tensor, new: torch.Tensor) -> None:
    """Sets Tensor.data, also from the host to a device without elements and back: the tensor becomes another one for
    C++, while it stays the same object for Python.

    Graphs and views of before know the one that it was. A backward pass that comes to that is an error.
    """
    if _is_alike(tensor, new) or not _can_become(tensor):
        _data.__set__(tensor, new)
        return
    grad, needs_grad = tensor.grad, tensor.requires_grad
    tensor.grad = None
    if needs_grad:
        get_gradient_edge(tensor).node.register_prehook(_refuse_gradient)
    torch._C._swap_tensor_impl(tensor, new.detach())
    tensor.requires_grad_(needs_grad)
    if grad is not None:
        set_data(grad, grad.detach().to(new.device))  # C++ has gradients behind the same type
        tensor.grad = grad


def can_set_data(original: Callable[..., bool]) -> Callable[..., bool]:
    """Makes torch._has_compatible_shallow_copy_type of PyTorch's: it says whether a tensor's data can be another one's,
    by which modules decide to keep their parameters when they move to a device."""

    def _has_compatible_shallow_copy_type(*pair: torch.Tensor) -> bool:  # compilers compare names of parameters
        is_compatible = original(*pair)
        return is_compatible if is_compatible or _is_alike(*pair) else _can_become(pair[0])

    return _has_compatible_shallow_copy_type


def _is_alike(tensor: torch.Tensor, new: torch.Tensor) -> bool:
    """Says whether no tensor without elements takes the place of one with them, nor the other way round."""
    if _is_meta(tensor) == _is_meta(new) or tensor.layout is not torch.strided or new.layout is not torch.strided:
        return True
    return places.of(tensor if _is_meta(tensor) else new) is None  # a program's own meta tensor


def _can_become(tensor: torch.Tensor) -> bool:
    """Says whether a tensor has nothing to lose when C++ knows it as another one."""
    hooks = tensor._backward_hooks or getattr(tensor, "_post_accumulate_grad_hooks", None)
    return tensor.is_leaf and not hooks and not weakref.getweakrefs(tensor)


def _refuse_gradient(_: Any) -> NoReturn:
    """Refuses the gradient that a graph has for a tensor that has become another one since."""
    raise RuntimeError(
        "a backward pass came to a leaf whose data (tensor.data = ...) has moved between the host and a device since "
        "the forward pass, which a run without data (--no-data) cannot follow. FullyShardedDataParallel with "
        "cpu_offload moves it so; fully_shard with CPUOffloadPolicy does not"
    )
