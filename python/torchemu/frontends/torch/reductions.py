"""PyTorch's reduce ops as the core names them."""

from __future__ import annotations

from typing import Any

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


def _factor(op: Any) -> float:
    """Returns the factor of a premul_sum: PyTorch shows it only where it is pickled."""
    state = op.__getstate__() if hasattr(op, "__getstate__") else None
    factor = state[1] if isinstance(state, tuple) and len(state) > 1 else None
    if factor is None:
        raise RuntimeError(f"the factor of {op} cannot be found out")
    return float(factor)
