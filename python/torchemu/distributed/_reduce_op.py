"""How collectives combine elements."""

from __future__ import annotations

import enum


class ReduceOp(enum.Enum):
    """How all_reduce and its kin combine elements."""

    SUM = "sum"
    AVG = "avg"
    PRODUCT = "product"
    MIN = "min"
    MAX = "max"
    BAND = "band"
    BOR = "bor"
    BXOR = "bxor"


def op_name(op: ReduceOp | str) -> str:
    if isinstance(op, ReduceOp):
        return op.value
    if isinstance(op, str):
        return op
    raise TypeError(f"op must be a ReduceOp or its name, not {op!r}")
