"""Uses of tensors of operations between ranks that the rank has not waited for; see runtime/outstanding.py."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any

import torch

from torchemu import runtime
from torchemu.runtime.outstanding import Elements

_data_ptr = torch._C.TensorBase.data_ptr
_start = torch._C.StorageBase.data_ptr


def elements(tensor: Any) -> Elements | None:
    """Returns where a tensor's elements are; None for what has none in the host's memory."""
    if not isinstance(tensor, torch.Tensor) or tensor.layout is not torch.strided:
        return None
    try:
        memory, start = _start(tensor.untyped_storage()), _data_ptr(tensor)
    except (NotImplementedError, RuntimeError):
        return None
    if not memory:
        return None
    size = tensor.element_size()
    steps = tuple([step * size for step in tensor.stride()])
    return Elements(memory, start - memory, tuple(tensor.shape), steps, size)


def look(name: str, reads: Iterable[Any], writes: Iterable[Any], spared: object = None) -> None:
    """Reports a use of tensors of outstanding operations; see Outstanding.look."""
    outstanding = runtime.current().outstanding
    if outstanding is not None and outstanding.issued:
        outstanding.look(name, reads, writes, elements, spared)


def look_at_call(func: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> None:
    """Reports a call of an operation that uses tensors of outstanding ones."""
    reads, writes = operands(func, args, kwargs)
    if reads or writes:
        look(func._schema.name.partition("::")[2], reads, writes)


def operands(func: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> tuple[list[torch.Tensor], list[torch.Tensor]]:
    """Returns the tensors that a call of an operation reads, and those that it writes."""
    written = _STATISTICS if func in _NORMALIZING and args[5] else _written(func)
    reads: list[Any] = []
    writes: list[Any] = []
    for i, value in enumerate(args):
        _add(value, writes if i in written else reads)
    for name, value in kwargs.items():
        _add(value, writes if name in written else reads)
    return reads, writes


# Batch normalization writes its running statistics when it trains, which its schema does not say.
_NORMALIZING = {torch.ops.aten.native_batch_norm.default, torch.ops.aten.cudnn_batch_norm.default}
_STATISTICS = frozenset({3, 4})


def _add(value: Any, to: list[Any]) -> None:
    if isinstance(value, torch.Tensor):
        to.append(value)
    elif isinstance(value, (list, tuple)):
        to.extend(v for v in value if isinstance(v, torch.Tensor))


@cache
def _written(func: Any) -> frozenset[Any]:
    """Returns the positions and the names of the arguments that an operation writes."""
    arguments = [
        (i, a.name) for i, a in enumerate(func._schema.arguments) if a.alias_info is not None and a.alias_info.is_write
    ]
    return frozenset(key for pair in arguments for key in pair)
