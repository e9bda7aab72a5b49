"""Calls of process groups as operations, as PyTorch's own make them: a program's dispatch modes, and its classes of
tensors, see them."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.utils._python_dispatch import (
    TorchDispatchMode,
    _get_current_dispatch_mode_stack,
    _pop_mode,
    _push_mode,
)

from torchemu.frontends.torch.device.dispatch import RankMode, is_plain
from torchemu.frontends.torch.works import Several
from torchemu.runtime import capture as captures

_depth = torch._C._len_torch_dispatch_stack
_at = torch._C._get_dispatch_stack_at


def as_operators(kind: type) -> type:
    """Lets programs' modes and tensors see what is called of a class of process groups. Returns the class."""
    for name, operation in _OPERATIONS.items():
        method = vars(kind)[name]
        called = _called(method, getattr(torch.ops.c10d, operation).default)
        for alias in [other for other, value in vars(kind).items() if value is method]:
            setattr(kind, alias, called)
    return kind


def _called(method: Callable[..., Any], op: Any) -> Callable[..., Any]:
    parameters = inspect.signature(method)
    tensors = sum("Tensor" in str(a.type) and "Optional" not in str(a.type) for a in op._schema.arguments)

    @functools.wraps(method)
    def dispatched(self: Any, *args: Any, **kwargs: Any) -> Any:
        depth = _depth()
        are_hidden = not depth or (depth == 1 and _at(0).__class__ is RankMode)
        if are_hidden and all(map(_is_plain, args[:tensors])):
            return method(self, *args, **kwargs)
        modes = _modes_of_program()
        if modes is None:
            return method(self, *args, **kwargs)
        given = parameters.bind(self, *args, **kwargs).arguments
        del given["self"]
        others = dict(list(given.items())[tensors:])
        ground = _Ground(op, lambda used: method(self, *used[:tensors], **others))
        return _through(modes, ground, _arguments(op, self, given))

    return compared(dispatched)


def compared(method: Callable[..., Any]) -> Callable[..., Any]:
    """Lets ranks meet before a method of a group is called, where the program has asked for that: see detailed."""

    @functools.wraps(method)
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        if self.meeting is None:
            return method(self, *args, **kwargs)
        return self.meeting.around(method, *args, **kwargs)

    return call


def _is_plain(given: Any) -> bool:
    """Reports whether tensors, or lists of such, are PyTorch's own to dispatch."""
    if isinstance(given, torch.Tensor):
        return is_plain(given.__class__)
    return not isinstance(given, (list, tuple)) or all(map(_is_plain, given))


def _modes_of_program() -> list[TorchDispatchMode] | None:
    """The dispatch modes that a program has entered; None where its tensors are PyTorch's stand-ins, or what it does
    is noted for a graph."""
    modes = _get_current_dispatch_mode_stack()
    if captures.current() is not None or any(getattr(mode, "_mode_key", None) for mode in modes):
        return None
    own = max((i for i, mode in enumerate(modes) if isinstance(mode, RankMode)), default=-1)
    return list(modes[own + 1 :])


class _Ground(TorchDispatchMode):
    """A dispatch mode below those of a program, which does what these, and tensors of the program's classes, have seen.

    Args:
        op: the operation that they see.
        issue: does it with the tensors that it gets, and returns its work.

    Attributes:
        works: those that it has begun: several where a class's tensors are made of several.
    """

    def __init__(self, op: Any, issue: Callable[[Sequence[Any]], Any]) -> None:
        super().__init__()
        self.op, self._issue = op, issue
        self.works: list[Any] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if types and not all(map(is_plain, types)):
            return NotImplemented
        if func is not self.op:
            return func(*args, **(kwargs or {}))
        work = self._issue(args)
        self.works.append(work)
        return work.boxed() if len(func._schema.returns) == 1 else (args[0], work.boxed())


def _through(modes: Sequence[TorchDispatchMode], ground: _Ground, args: Sequence[Any]) -> Any:
    """Calls an operation under modes, which are the topmost. Returns its work; one that is over where a mode has given
    the results itself."""
    for _ in modes:
        _pop_mode()
    try:
        with ground:
            _call_under(modes, ground.op, args)
    finally:
        for mode in modes:
            _push_mode(mode)
    return ground.works[0] if len(ground.works) == 1 else Several(ground.works, args[0])


def _call_under(modes: Sequence[TorchDispatchMode], op: Any, args: Sequence[Any]) -> None:
    for mode in modes:
        _push_mode(mode)
    try:
        op(*args)
    finally:
        for _ in modes:
            _pop_mode()


def _arguments(op: Any, group: Any, given: dict[str, Any]) -> list[Any]:
    """Returns the operands of an operation, made of the arguments of a group's method."""
    opts, values = given.get("opts"), iter(given.values())
    made = {
        "process_group": group.boxed,
        "reduce_op": torch.classes.c10d.ReduceOp,  # which one cannot be said: PyTorch's Python makes no others
        "sparse_indices": lambda: None,
        "root_rank": lambda: int(getattr(opts, "rootRank", opts or 0)),
        "root_tensor": lambda: 0,
        "async_op": lambda: bool(getattr(opts, "asyncOp", True)),
        "timeout": lambda: -1,
    }
    return [
        made[a.name]() if a.name in made else _nested(next(values), str(a.type).count("List["))
        for a in op._schema.arguments
    ]


def _nested(value: Any, depth: int) -> Any:
    """Puts a value into lists until they are so deep."""
    if not depth:
        return value
    if isinstance(value, torch.Tensor) or (depth > 1 and value and isinstance(value[0], torch.Tensor)):
        return [_nested(value, depth - 1)]
    return list(value or ())


_OPERATIONS = {
    "_allgather_base": "_allgather_base_",
    "_reduce_scatter_base": "_reduce_scatter_base_",
    "allgather": "allgather_",
    "allgather_coalesced": "allgather_coalesced_",
    "allgather_into_tensor_coalesced": "allgather_into_tensor_coalesced_",
    "allreduce": "allreduce_",
    "allreduce_coalesced": "allreduce_coalesced_",
    "alltoall": "alltoall_",
    "alltoall_base": "alltoall_base_",
    "broadcast": "broadcast_",
    "gather": "gather_",
    "recv": "recv_",
    "recv_anysource": "recv_any_source_",
    "reduce": "reduce_",
    "reduce_scatter": "reduce_scatter_",
    "reduce_scatter_tensor_coalesced": "reduce_scatter_tensor_coalesced_",
    "scatter": "scatter_",
    "send": "send",
}
"""The operations of PyTorch's C++ by the methods that call them there; a barrier's has a tensor of its own."""
