"""Results of operations without their elements.

What an operation gives is known from the first call with operands of the same shapes: PyTorch's shape functions take
longer than small operations do.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch

from torchemu.frontends.torch.device.places import META, honestly

if TYPE_CHECKING:
    from torchemu.frontends.torch.device.operations import Operation

_empty_strided = torch.empty_strided
_is_meta = torch._C.TensorBase.is_meta.__get__

_MOST = 1 << 16

_known: dict[Any, Any] = {}
"""Results of calls: a layout, several, or False where it is to be asked each time."""

_accepted: set[Any] = set()
"""Calls that write into an operand, and that PyTorch does not refuse."""


def made(op: Operation, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """Returns what an operation gives, as tensors without elements.

    Args:
        args, kwargs: its arguments, whose tensors have no elements either.
    """
    try:
        key = _call(op, args, kwargs)
        known = _known.get(key)
    except TypeError:  # an argument that cannot be a key
        return honestly(op.compute, *args, **kwargs)
    if known is None:
        out = honestly(op.compute, *args, **kwargs)
        if len(_known) == _MOST:
            _known.clear()
        _known[key] = False if kwargs.get("out") is not None or op.in_place or op.aliases else _layout(out)
        return out
    if known is False:
        return honestly(op.compute, *args, **kwargs)
    if known.__class__ is tuple:
        return _empty_strided(known[0], known[1], dtype=known[2], device=META)
    several = [None if k is None else _empty_strided(k[0], k[1], dtype=k[2], device=META) for k in known]
    return several if known.__class__ is _List else tuple(several)


def look(op: Operation, args: Sequence[Any], kwargs: dict[str, Any]) -> None:
    """Lets PyTorch refuse what it does of a call that writes into an operand: sizes that differ, for one.

    Args:
        args, kwargs: its arguments, whose tensors have no elements either.
    """
    try:
        key = _call(op, args, kwargs)
        if key in _accepted:
            return
    except TypeError:  # an argument that cannot be a key
        key = None
    with contextlib.suppress(NotImplementedError):  # then nothing is known of its operands
        honestly(op.compute, *args, **kwargs)
    if len(_accepted) == _MOST:
        _accepted.clear()
    if key is not None:
        _accepted.add(key)


def _call(op: Operation, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """Returns what stands for all calls of the same shapes."""
    return op.func, _key(args), _key(tuple(kwargs.items())) if kwargs else None


def _key(value: Any) -> Any:
    """Returns what an argument contributes to the result's shape."""
    if isinstance(value, torch.Tensor):
        return value.shape, value.stride(), value.dtype
    if value.__class__ is list or value.__class__ is tuple:
        return tuple([_key(v) for v in value])
    if value.__class__ in (int, float, bool):
        return value.__class__, value
    return value


class _List(list[Any]):
    """Layouts of what an operation gives as a list."""


def _layout(out: Any) -> Any:
    """Returns the layout of a tensor in place of a result; False where it is no tensors without elements."""
    if isinstance(out, torch.Tensor):
        return (out.shape, out.stride(), out.dtype) if _is_meta(out) else False
    if isinstance(out, (tuple, list)) and all(o is None or (isinstance(o, torch.Tensor) and _is_meta(o)) for o in out):
        found = [None if o is None else (o.shape, o.stride(), o.dtype) for o in out]
        return _List(found) if isinstance(out, list) else [*found]
    return False
