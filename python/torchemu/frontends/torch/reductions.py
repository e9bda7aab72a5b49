"""PyTorch's reduce ops as the core names them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.distributed as dist

_KINDS = {
    dist.ReduceOp.SUM: "sum",
    dist.ReduceOp.AVG: "avg",
    dist.ReduceOp.PRODUCT: "prod",
    dist.ReduceOp.MIN: "min",
    dist.ReduceOp.MAX: "max",
    dist.ReduceOp.BAND: "band",
    dist.ReduceOp.BOR: "bor",
    dist.ReduceOp.BXOR: "bxor",
}


_NAMES = {int(kind): name for kind, name in _KINDS.items()}  # PyTorch's enumerations are slow to look up


def number(op: Any) -> int:
    """Returns PyTorch's number of a ReduceOp or RedOpType."""
    return int(getattr(op, "op", op))


def reduced(op: Any) -> tuple[str, float | None]:
    """The core's name of a ReduceOp or RedOpType, and the factor of a premul_sum; None for the others.

    Raises:
        RuntimeError: a factor that is a tensor of several elements.
    """
    found = _NAMES.get(number(op))
    return (found, None) if found is not None else ("sum", _factor(op))


_LOCAL: dict[str, Callable[..., torch.Tensor]] = {
    "sum": torch.add,
    "prod": torch.mul,
    "min": torch.minimum,
    "max": torch.maximum,
    "band": torch.bitwise_and,
    "bor": torch.bitwise_or,
    "bxor": torch.bitwise_xor,
}


def locally(op: Any) -> Callable[..., torch.Tensor]:
    """Returns the function that reduces two tensors of one rank by a ReduceOp or RedOpType.

    Raises:
        RuntimeError: there is none: it is AVG or PREMUL_SUM.
    """
    name, factor = reduced(op)
    if factor is not None or name not in _LOCAL:
        raise RuntimeError(f"several tensors of a rank cannot be reduced by {op}")
    return _LOCAL[name]


def _factor(op: Any) -> float:
    """Returns the factor of a premul_sum: PyTorch shows it only where it is pickled."""
    state = op.__getstate__() if hasattr(op, "__getstate__") else None
    factor = state[1] if isinstance(state, tuple) and len(state) > 1 else None
    if factor is None:
        raise RuntimeError(f"the factor of {op} cannot be found out")
    return float(factor)
