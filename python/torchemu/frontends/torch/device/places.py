"""Places of tensors: names of devices on storages whose memory is the CPU's.

PyTorch keeps the Python object of a storage as long as its memory, with the attributes that it has. So the name of a
device is an attribute of the storage, and views of a tensor, detached and saved tensors are where it is.
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import types
from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch.autograd import forward_ad, graph
from torch.autograd.function import BackwardCFunction

from torchemu.frontends.torch.device import visible
from torchemu.frontends.torch.device.ground import RankLocal, context

ACCELERATORS = ("cuda", "ahbm")
"""Types of devices that are simulated. Both mean the SIPs of the rank's node."""

HOST = torch.device("cpu")
META = torch.device("meta")
STATED_HOST = torch.device("cpu", 0)
"""The host in a call by a program. C++ that asks for a tensor where another one is says HOST, also of a named one."""


class Place:
    """A simulated device.

    Attributes:
        device: its name.
        number: the device's index.
    """

    __slots__ = ("device", "number")

    def __init__(self, device: torch.device, number: int) -> None:
        self.device, self.number = device, number

    def __repr__(self) -> str:
        return f"Place({self.device})"


_PLACES: dict[tuple[str, int], Place] = {}


def place(kind: str, number: int) -> Place:
    """Returns the place of a type of device and an index."""
    known = _PLACES.get((kind, number))
    if known is None:
        known = _PLACES[kind, number] = Place(torch.device(kind, number), number)
    return known


def is_own_word(device: torch.device) -> bool:
    """Reports whether an object is that by which tensors on a place name it."""
    known = _PLACES.get((device.type, device.index))
    return known is not None and known.device is device


def here(kind: str = "cuda") -> Place:
    """Returns the current device of the running rank.

    Raises:
        RuntimeError: its program sees none.
    """
    visible.settle()
    return place(kind, context().device)


def is_simulated(device: torch.device) -> bool:
    """Reports whether a device is one of the simulated."""
    return device.type in ACCELERATORS


def meant(device: Any) -> torch.device | None:
    """Returns the device that an argument means, with its index where it is simulated; None for None.

    Raises:
        AcceleratorError: the rank's node has no such device.
    """
    if device is None:
        return None
    if not isinstance(device, torch.device):
        device = torch.device("cuda", device) if isinstance(device, int) else torch.device(device)
    if device.type in ACCELERATORS:
        return found(device).device
    return device


def found(device: torch.device) -> Place:
    """Returns the place of a simulated device; of the current one where it has no index.

    Raises:
        AcceleratorError: the rank's program sees no such device.
        RuntimeError: it sees none.
    """
    if device.index is None:
        return here(device.type)
    visible.settle(device.index)
    count = visible.count()
    if device.index >= count:
        raise torch.AcceleratorError(
            "CUDA error: invalid device ordinal\nGPU device may be out of range, do you have enough GPUs? "
            f"There are {count}, from cuda:0 on"
        )
    return place(device.type, device.index)


def of_storage(storage: Any) -> Place | None:
    """Returns where a storage is; None for the host."""
    return getattr(storage, "_place", None)


def of(tensor: torch.Tensor) -> Place | None:
    """Returns where a tensor is; None for the host, and for what has a device of its own, such as meta.

    A tensor without a storage, sparse or of a subclass that wraps others, has the name itself.
    """
    try:
        found: Place | None = getattr(tensor.untyped_storage(), "_place", None)
    except (NotImplementedError, RuntimeError):
        found = None
    return found if found is not None else of_wrapper(tensor)


def of_wrapper(tensor: torch.Tensor) -> Place | None:
    """Returns where a tensor without a storage of its own is: by its name, or by the tensor that it wraps."""
    found: Place | None = getattr(tensor, "_place", None)
    if found is not None:
        return found
    if tensor.__class__ in _PLAIN:
        if tensor.layout in _PARTS:  # C++ has made it, of parts that are there
            return of(next(parts(tensor)))
        return of(_unwrapped(tensor)) if not _is_meta(tensor) and _is_of_functorch(tensor) else None
    for inner in _INNER:
        wrapped = getattr(tensor, inner, None)
        if isinstance(wrapped, torch.Tensor):
            return of(wrapped)
    return None


_is_meta = torch._C.TensorBase.is_meta.__get__
_is_of_functorch, _unwrapped = torch._C._functorch.is_functorch_wrapped_tensor, torch._C._functorch.get_unwrapped


def parts(tensor: torch.Tensor) -> Iterator[torch.Tensor]:
    """The tensors that a sparse one is made of, its values first."""
    with torch._C._DisableTorchDispatch():
        for name in _PARTS.get(tensor.layout, ()):
            yield getattr(tensor, name)()


_PARTS = {
    torch.sparse_coo: ("_values", "_indices"),
    torch.sparse_csr: ("values", "crow_indices", "col_indices"),
    torch.sparse_bsr: ("values", "crow_indices", "col_indices"),
    torch.sparse_csc: ("values", "ccol_indices", "row_indices"),
    torch.sparse_bsc: ("values", "ccol_indices", "row_indices"),
}
"""Methods that give the parts of sparse tensors, by their layouts."""


def pin(tensor: torch.Tensor) -> torch.Tensor:
    """Says of the memory of a tensor on the host, or of its parts, that it is pinned, where it has bytes. Returns the
    tensor."""
    for part in _memories(tensor):
        if part.nbytes:
            part.untyped_storage()._pinned = True
    return tensor


def is_pinned(tensor: torch.Tensor) -> bool:
    """Reports whether the memory of a tensor is pinned."""
    return any(is_pinned_storage(part.untyped_storage()) for part in _memories(tensor))


def is_pinned_storage(storage: torch.UntypedStorage) -> bool:
    """Reports whether memory is pinned: it was made so, or a program has registered it."""
    if getattr(storage, "_pinned", False):
        return True
    registered = _registered.get()
    if not registered or getattr(storage, "_place", None) is not None:
        return False
    start = storage.data_ptr()
    return any(first <= start < end for first, end in registered.items())


def register(address: int, size: int) -> None:
    """Pins memory of the host for the running rank, as cudaHostRegister does."""
    _registered.get()[address] = address + size


def unregister(address: int) -> None:
    """Ends what register began."""
    _registered.get().pop(address, None)


_registered: RankLocal[dict[int, int]] = RankLocal(dict)
"""Where the host's memory that a rank has registered begins, and where it ends."""


def _memories(tensor: torch.Tensor) -> Iterator[torch.Tensor]:
    return iter((tensor,)) if tensor.layout is torch.strided else parts(tensor)


_PLAIN = frozenset({torch.Tensor, torch.nn.Parameter})

_INNER = ("_local_tensor", "elem", "_data", "_tensor")
"""Attributes by which subclasses of tensors wrap one: DTensor's, functional collectives', and what libraries use."""


def name(tensor: torch.Tensor, where: Place) -> torch.Tensor:
    """Says where the memory of a tensor is, without a word to its device. Returns the tensor."""
    try:
        tensor.untyped_storage()._place = where
    except (NotImplementedError, RuntimeError):
        tensor._place = where
    return tensor


_asking: list[bool] = []


def honestly(compute: Any, *args: Any, **kwargs: Any) -> Any:
    """Calls what is written in Python and asks tensors where they are, and is to hear what C++ would."""
    _asking.append(True)
    try:
        return compute(*args, **kwargs)
    finally:
        _asking.pop()


class _Made(threading.local):
    on: tuple[Place | list[Place | None], ...] = ()


_made = _Made()  # each thread is one rank's


@contextlib.contextmanager
def made_at(where: Place | None) -> Iterator[None]:
    """Does what made_on does, for a place; nothing for the host."""
    if where is None:
        yield
        return
    before = _made.on
    _made.on = (*before, where)
    try:
        yield
    finally:
        _made.on = before


@contextlib.contextmanager
def made_on(device: torch.device) -> Iterator[None]:
    """Puts tensors on a device that C++ code makes meanwhile on what it takes for the device of others."""
    with made_at(found(device) if is_simulated(device) else None):
        yield


@contextlib.contextmanager
def made_in_turn(devices: Sequence[torch.device]) -> Iterator[None]:
    """Acts as made_on, for the tensors that C++ code makes one after the other; all further ones are on the last."""
    before = _made.on
    _made.on = (*before, [found(device) if is_simulated(device) else None for device in devices])
    try:
        yield
    finally:
        _made.on = before


def is_distributed(tensor: Any) -> bool:
    """Says whether a tensor is a DTensor."""
    return hasattr(type(tensor), "redistribute")


def is_on_host(tensor: torch.Tensor) -> bool:
    """Reports whether a tensor is in the host's memory, also one that C++ has just made for a collective."""
    return of(tensor) is None and default_for_code() is None


def default_for_code(last: Place | None = None, is_code: bool = False) -> Place | None:
    """Returns where tensors are to be that C++ makes on what it takes for the device of others: where made_on puts
    them, or where a backward pass or a transformation of functions goes on; None is the host.

    Args:
        last: where the thread's last operation was.
        is_code: it is C++ that makes the tensor, and not perhaps a program.
    """
    if _made.on:
        on = _made.on[-1]
        if isinstance(on, list):
            return on.pop(0) if len(on) > 1 else on[0]
        return on
    if last is None:
        return None
    return last if (is_code and is_transformed()) or _is_of_engine() else None


def is_plain_on_device(x: Any) -> bool:
    """Reports whether a tensor is PyTorch's own, on a device, and nobody looks at what operations are made of."""
    return x.__class__ in (torch.Tensor, torch.nn.Parameter) and of(x) is not None and not is_transformed()


def is_transformed() -> bool:
    """Reports whether a transformation of functions looks at what operations are made of."""
    return torch._C._are_functorch_transforms_active() or forward_ad._current_level >= 0


def _is_of_engine() -> bool:
    """Says whether it is a formula of autograd, in C++, that calls the operation, and no function in Python."""
    if torch._C._current_graph_task_id() == -1:
        return False
    frame: types.FrameType | None = sys._getframe(2)
    while frame is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        frame = frame.f_back
    return frame is not None and frame.f_code is _ENGINE


def is_in_hook() -> bool:
    """Says whether a hook of a backward pass runs, and neither a formula of autograd nor a Function's backward."""
    if torch._C._current_graph_task_id() == -1 or _is_of_engine():
        return False
    return not isinstance(torch._C._current_autograd_node(), BackwardCFunction)


_PACKAGE = os.path.join(os.path.dirname(__file__), "")
_ENGINE = graph._engine_run_backward.__code__
