"""Timing only: tensors of devices have names and shapes and no elements, and operations take their time.

Such a tensor is PyTorch's meta tensor with the name of a device on its storage. What an operation gives is known from
the first call with operands of the same shapes: PyTorch's shape functions take longer than small operations do.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch._ops import HigherOrderOperator

from torchemu.frontends.torch.device import (
    assumptions,
    dispatch,
    elements,
    fakes,
    functional,
    generators,
    layouts,
    places,
    traffic,
)
from torchemu.frontends.torch.device.dispatch import RankMode
from torchemu.frontends.torch.device.ground import call_site, go
from torchemu.frontends.torch.device.operations import KNOWN, Operation, of, result_place
from torchemu.frontends.torch.device.places import META, Place, honestly

_empty_strided = torch.empty_strided
_is_meta = torch._C.TensorBase.is_meta.__get__

_LITTLE = 1 << 20
"""Bytes up to which what is copied to the host is zeros; more is what new memory holds."""


def without_elements(tensor: torch.Tensor, at: Place | None = None) -> torch.Tensor:
    """Returns a tensor like one, without its elements."""
    if _is_meta(tensor):
        return tensor
    made = _empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype, device=META)
    return made if at is None else places.name(made, at)


def is_without_elements(tensor: torch.Tensor) -> bool:
    """Reports whether a tensor of a device has no elements."""
    return _is_meta(tensor)


def lacking(what: str) -> RuntimeError:
    """The error of what a program cannot do without elements, with the place in it.

    Args:
        what: it cannot do, and why.
    """
    return RuntimeError(f"{what}, and a run without data has none (--no-data), at {call_site()}")


def truth(tensor: torch.Tensor) -> bool:
    """Says whether a tensor's only element is not zero: torch.Tensor.__bool__ in a run without data.

    Raises:
        RuntimeError: it has no elements, so the program's way cannot depend on them.
    """
    if places.of(tensor) is not None and _is_meta(tensor):
        if assumptions.are_made():
            tensor.item()  # the host waits
            return True
        raise lacking(f"bool of a tensor on {tensor.device}: what the program does next depends on its element")
    return bool(_truth(tensor))


_truth = torch.Tensor.__bool__


def numbers_of_steps(get_value: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Returns a function by which optimizers read how many steps they have taken, and products of such: numbers on a
    device are a half, for optimizers divide by 1 less them, and by 1 less a power of theirs."""

    def numbered(x: Any) -> Any:
        value = get_value(x)
        return 0.5 if isinstance(x, torch.Tensor) and places.of(x) is not None else value

    return numbered


def with_elements(function: Callable[..., Any]) -> Callable[..., Any]:
    """Makes a function compute what it does on devices, as a run with data would: what it sends is no tensor of the
    program's but an object."""

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        with elements.kept():
            return function(*args, **kwargs)

    return call


def standing_in(tensors: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    """Returns tensors of the same shapes, where the given ones are, each with one element for all."""
    made = []
    for tensor in tensors:
        one, at = torch.zeros((), dtype=tensor.dtype, device=places.STATED_HOST), places.of(tensor)
        made.append((one if at is None else places.name(one, at)).expand(tensor.shape))
    return made


class TimingMode(RankMode):
    """A dispatch mode that sees the operations of a rank's thread, and computes nothing on devices."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if elements.are_kept():
            return super().__torch_dispatch__(func, types, args, kwargs)
        if types and not all(map(dispatch.is_plain, types)):
            return self.subclassed(func, types, args, kwargs)
        if fakes.are_made():
            return fakes.handed_on(func, args, kwargs)
        if self.work.autograd:
            self.launches.each = self.work.of_kernels(args)
        if func not in KNOWN and isinstance(func, HigherOrderOperator):
            return self.higher(func, args, kwargs or {})
        op = of(func, args, kwargs)
        return _TIMED[op.kind](self, op, args, kwargs or {})

    def timed_kernel(self, op: Operation, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        """Charges the device of the operands, and gives results without elements."""
        at, nbytes = op.survey(args, kwargs)
        if at is None:
            self.note_host(args)
            if op.writes_by_index:
                args = self.with_places(args)
            return op.on_host(*args, **kwargs)
        self.last = at
        args, kwargs = _bare(args), {name: _bare_one(value) for name, value in kwargs.items()}
        kwargs = _on_meta(kwargs)
        if op.random:
            generators.passed(args, kwargs)
            kwargs = {name: value for name, value in kwargs.items() if name != "generator" or value is None}
        return self.made(op, args, kwargs, self.shaped(op, args, kwargs), at, nbytes)

    def communicated(self, op: Operation, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        """Calls a collective that returns its result; such of the host's tensors is PyTorch's own."""
        if places.default_for_code() is None or elements.are_kept():
            return op.func(*args, **kwargs)
        return honestly(functional.communicated, op.func, op.name, args, kwargs)

    def timed_view(self, op: Operation, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        """Calls what looks at no element."""
        return honestly(op.compute, *args, **kwargs)

    def shaped(self, op: Operation, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        """Returns what an operation gives, without elements."""
        if op.in_place and not op.fills and op.name not in _RESHAPES:
            layouts.look(op, args, kwargs)
            return args[0] if op.func._schema.returns else None
        try:
            return layouts.made(op, args, kwargs)
        except NotImplementedError:
            raise lacking(f"{op.name}: the size of its result depends on elements") from None

    def timed_read(self, op: Operation, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        """Lets the host wait, and tells it a zero.

        Raises:
            RuntimeError: the result's size depends on elements.
        """
        if op.waits:
            return self.timed_wait(op, args, kwargs)
        at, nbytes = op.survey(args, kwargs)
        if at is None:
            return op.compute(*args, **kwargs)
        if op.works:
            self.launch(op.name, nbytes, nbytes // 4, "vector")
        self.catch_up()
        if op.name == "_local_scalar_dense":
            kind = args[0].dtype
            return 0.0 if kind.is_floating_point else 0j if kind.is_complex else False if kind is torch.bool else 0
        if op.name == "equal":
            return True
        raise lacking(f"{op.name}: the size of its result depends on elements")

    def timed_wait(self, op: Operation, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        """Has the host wait, before or after, and gives results without elements.

        Raises:
            RuntimeError: nobody knows how many elements are picked.
        """
        picked = None
        if op.waits == "first":
            self.prepare(args)
            picked = assumptions.picked(op.name, args)
        if picked is not None:
            at, nbytes = op.survey(args, kwargs)
            assert at is not None  # a host's tensor has elements
            return self.made(op, args, kwargs, picked, at, nbytes)
        out = self.timed_kernel(op, args, kwargs)
        if op.waits == "last":
            self.look(args)
        return out

    def packs(self, op: Operation, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        """Returns packed sequences, without elements where they are on a device: the host knows their lengths."""
        given, lengths, batch_first = args
        if places.of(given) is None or not _is_meta(given):
            return super().packs(op, args, kwargs)
        batch, steps = given.shape[:2] if batch_first else given.shape[1::-1]
        _, sizes = super().packs(op, (torch.empty(steps, batch, 1, device=places.HOST), lengths, False), kwargs)
        return torch.empty((int(sizes.sum()), *given.shape[2:]), dtype=given.dtype, device=META), sizes

    def timed_factory(self, op: Operation, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        """Makes a tensor without elements where it is to be on a device."""
        like = args[0] if args and isinstance(args[0], torch.Tensor) else None
        kwargs = _as_cpp_says(kwargs, like, self.last)
        at, device = result_place(kwargs, places.of(like) if like is not None else None, like is not None, self.last)
        if at is None:
            if like is not None and _is_meta(like) and places.of(like) is not None:
                args = (torch.empty_like(like, device=places.HOST), *args[1:])
            return self.factory(op, args, kwargs)
        if op.random:
            generators.passed(args, kwargs)
        kwargs = {name: value for name, value in kwargs.items() if name not in ("pin_memory", "generator")}
        func = op.func
        if "generator" in {a.name for a in func._schema.arguments}:
            func = getattr(func._overloadpacket, _without_generator(func._overloadname))
        out = honestly(func._op, *_bare(args), **{**kwargs, "device": META})
        del device
        nbytes, flops = self.settle(out, at)
        if op.works:
            self.launch(op.name, nbytes, flops, "vector")
        return out

    def timed_move(self, op: Operation, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        """Charges a copy, and gives the host zeros."""
        is_new = op.name == "_to_copy"
        kwargs = _as_cpp_says(kwargs, args[0] if is_new else args[1])
        to, source, late = self.ends_of(op, args, kwargs)
        at = places.of(source)
        self.last = to
        if at is None and to is None:
            return op.compute(*args, **kwargs)
        if not is_new:
            layouts.look(op, _bare(args[:2]), {})
        if to is not None:
            out = self._moved_to_device(op, args, kwargs, to) if is_new else args[0]
            self.charge_copy(op, source, out, to, late)
            return out
        go.LaunchCopy(self.rank.stream, traffic.size(source), True)
        if not late:
            self.catch_up()
        if not is_new:
            return args[0]
        empty = torch.zeros if traffic.size(source) <= _LITTLE else torch.empty
        made = empty(source.shape, dtype=kwargs.get("dtype") or source.dtype, device=places.HOST)
        return places.pin(made) if late else made

    def _moved_to_device(self, op: Operation, args: Sequence[Any], kwargs: dict[str, Any], to: Place) -> torch.Tensor:
        kwargs = {name: value for name, value in kwargs.items() if name not in ("pin_memory", "non_blocking")}
        out: torch.Tensor = self.shaped(op, _bare(args), {**kwargs, "device": META})
        self.settle(out, to)
        return out


_RESHAPES = {"resize_", "resize_as_", "set_", "squeeze_", "unsqueeze_", "t_", "transpose_", "as_strided_", "detach_"}


def _bare(args: Sequence[Any]) -> Sequence[Any]:
    """Arguments whose tensors have no elements."""
    for a in args:
        if a.__class__ is list or (isinstance(a, torch.Tensor) and not _is_meta(a)):
            return [_bare_one(a) for a in args]
    return args


def _bare_one(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return without_elements(value)
    if value.__class__ is list:
        return [_bare_one(v) for v in value]
    return value


def _as_cpp_says(kwargs: dict[str, Any], like: torch.Tensor | None, last: Place | None = None) -> dict[str, Any]:
    """Arguments of a call by C++ that asks for a tensor where one is whose elements are missing."""
    device = kwargs.get("device")
    where = places.default_for_code(last) if like is None else places.of(like)
    if device is not None and device.type == "meta" and where is not None:
        return {**kwargs, "device": places.HOST}
    return kwargs


def _on_meta(kwargs: dict[str, Any]) -> dict[str, Any]:
    return {**kwargs, "device": META} if kwargs.get("device") is not None else kwargs


def _without_generator(overload: str) -> str:
    """The name of the overload that takes no generator."""
    name = overload.replace("_generator", "").replace("generator_", "").replace("generator", "")
    return name or "default"


_TIMED: dict[str, Callable[..., Any]] = {
    "foreign": RankMode.foreign, "view": TimingMode.timed_view, "composite": RankMode.composite,
    "kernel": TimingMode.timed_kernel, "read": TimingMode.timed_read, "factory": TimingMode.timed_factory,
    "move": TimingMode.timed_move, "packed": RankMode.packed, "resize": RankMode.resize,
}  # fmt: skip
