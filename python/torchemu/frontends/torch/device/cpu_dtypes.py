"""Operations for which the CPU has no kernel of a dtype, and CUDA has: histc of integers, say."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

_WIDER = {
    torch.float16: torch.float32,
    torch.bfloat16: torch.float32,
    **dict.fromkeys((torch.int8, torch.int16, torch.int32, torch.int64, torch.uint8, torch.bool), torch.float64),
}
"""Dtypes that hold all values of another one; int64's up to 2**53."""

_SAID = "not implemented for '"


def computed(op: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """Computes an operation, on operands of wider dtypes where there is no kernel for theirs."""
    try:
        return op.compute(*args, **kwargs)
    except RuntimeError as error:
        out = instead(op, args, kwargs, str(error))
        if out is NotImplemented:
            raise
        return out


def instead(op: Any, args: Sequence[Any], kwargs: dict[str, Any], error: str) -> Any:
    """Calls an operation on operands of wider dtypes, and returns its results in the operands' own.

    It returns NotImplemented where the error is another one, there is no such kernel either, or the operation writes
    into an operand.

    Args:
        error: the text of what the call with the operands themselves has raised.
    """
    if op.in_place or _SAID not in error:
        return NotImplemented
    first = next((a for a in args if isinstance(a, torch.Tensor)), None)
    wider = None if first is None else _WIDER.get(first.dtype)
    if first is None or wider is None or "out" in kwargs:
        return NotImplemented
    narrow = first.dtype

    def widened(value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            return value.to(wider) if value.dtype == narrow else value
        if isinstance(value, (list, tuple)):
            return [widened(v) for v in value]
        return value

    try:
        out = op.compute(*map(widened, args), **{name: widened(value) for name, value in kwargs.items()})
    except Exception:
        return NotImplemented
    return _narrowed(out, narrow, wider)


def _narrowed(out: Any, narrow: torch.dtype, wider: torch.dtype) -> Any:
    if isinstance(out, torch.Tensor):
        return out.to(narrow) if out.dtype == wider else out
    if isinstance(out, (list, tuple)):
        return type(out)([_narrowed(o, narrow, wider) for o in out])
    return out
