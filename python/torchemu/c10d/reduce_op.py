"""Reduce ops say how collectives combine elements."""

from __future__ import annotations

import enum
import warnings
from typing import Any

from torchemu.dtypes import dtype


class RedOpType(enum.Enum):
    """The kinds of reduction; ReduceOp.SUM and its kin are of this type, as in PyTorch."""

    SUM = 0
    AVG = 1
    PRODUCT = 2
    MIN = 3
    MAX = 4
    BAND = 5
    BOR = 6
    BXOR = 7
    PREMUL_SUM = 8
    UNUSED = 9

    __hash__ = object.__hash__  # Enum's, of the name, is a function in Python

    def __int__(self) -> int:
        return self.value


class ReduceOp:
    """A kind of reduction, with its factor if it is PREMUL_SUM. Equal to its kind.

    Attributes:
        op: the kind.
        factor: what every rank multiplies its elements by; None without one.
    """

    RedOpType = RedOpType
    SUM = RedOpType.SUM
    AVG = RedOpType.AVG
    PRODUCT = RedOpType.PRODUCT
    MIN = RedOpType.MIN
    MAX = RedOpType.MAX
    BAND = RedOpType.BAND
    BOR = RedOpType.BOR
    BXOR = RedOpType.BXOR
    PREMUL_SUM = RedOpType.PREMUL_SUM
    UNUSED = RedOpType.UNUSED

    def __init__(self, op: Any, factor: float | None = None) -> None:
        if not isinstance(op, RedOpType):
            raise TypeError(f"a ReduceOp is made of one of ReduceOp.SUM and its kin, not of {op!r}")
        self.op, self.factor = op, factor

    def __eq__(self, other: object) -> bool:
        if isinstance(other, ReduceOp):
            return (self.op, self.factor) == (other.op, other.factor)
        return self.op is other

    def __hash__(self) -> int:
        return hash(self.op)

    def __repr__(self) -> str:
        factor = "" if self.factor is None else f", factor={self.factor}"
        return f"ReduceOp({self.op}{factor})"


def _make_nccl_premul_sum(factor: Any) -> ReduceOp:
    """The reduction that multiplies each rank's elements by its factor, and adds."""
    return ReduceOp(RedOpType.PREMUL_SUM, float(factor))


class _Deprecated:
    """ReduceOp as it was before PyTorch 1.0: its kinds, with a warning."""

    def __getattribute__(self, name: str) -> Any:
        warnings.warn(
            "`torch.distributed.reduce_op` is deprecated, please use `torch.distributed.ReduceOp` instead",
            FutureWarning,
            stacklevel=2,
        )
        return RedOpType.__members__ if name == "__members__" else getattr(RedOpType, name)


reduce_op = _Deprecated()
"""Deprecated: use ReduceOp."""


def supports_complex(reduceOp: RedOpType | ReduceOp) -> bool:  # noqa: N803 (PyTorch's name)
    """Returns whether the reduction means something for complex numbers, taken as pairs of real ones."""
    return reduceOp in (RedOpType.SUM, RedOpType.AVG, RedOpType.PREMUL_SUM, RedOpType.UNUSED)


_CORE_NAMES = {
    RedOpType.SUM: "sum",
    RedOpType.AVG: "avg",
    RedOpType.PRODUCT: "prod",
    RedOpType.MIN: "min",
    RedOpType.MAX: "max",
    RedOpType.BAND: "band",
    RedOpType.BOR: "bor",
    RedOpType.BXOR: "bxor",
}
_REDUCED: dict[RedOpType, tuple[str, float | None]] = {op: (name, None) for op, name in _CORE_NAMES.items()}
_NAMED = {name: name for name in _CORE_NAMES.values()} | {"product": "prod", "mean": "avg"}
_BITWISE = ("band", "bor", "bxor")


Reduced = tuple[str, float | None]
"""The core's name of a reduction, and what every rank's elements are multiplied by first; None for nothing."""


def reduced(op: RedOpType | ReduceOp | str, kind: dtype, operation: str = "all_reduce") -> Reduced:
    """The reduction of elements of that type, for a collective.

    Raises:
        TypeError: not a reduction. A name such as "sum" is one here, though not in PyTorch.
        RuntimeError: the type has no such reduction.
        ValueError: PREMUL_SUM without a factor; all_reduce of complex numbers by what they have not.
    """
    if isinstance(op, ReduceOp) and op.factor is None:
        op = op.op
    known = _REDUCED.get(op) if isinstance(op, RedOpType) else None
    if known is None:
        known = _unusual(op, kind)
    name = known[0]
    if kind.is_complex and not supports_complex(reduction_of(name)):
        error = ValueError if operation == "all_reduce" else RuntimeError
        raise error(f"{operation} does not support {reduction_of(name)} on complex tensors")
    if name in _BITWISE and kind.is_floating_point:
        raise RuntimeError(f"Cannot use ReduceOp.{name.upper()} with non-integral dtype")
    return known


def reduction_of(name: str, factor: float | None = None) -> RedOpType | ReduceOp:
    """The reduction of the Go core's name."""
    if factor is not None:
        return ReduceOp(RedOpType.PREMUL_SUM, factor)
    return next(op for op, known in _CORE_NAMES.items() if known == _NAMED[name])


def _unusual(op: Any, kind: dtype) -> Reduced:
    if isinstance(op, ReduceOp):
        assert op.factor is not None
        return _with_factor(op.factor, kind)
    if isinstance(op, str) and op.lower() in _NAMED:
        return _NAMED[op.lower()], None
    if op is RedOpType.PREMUL_SUM:
        raise ValueError("PREMUL_SUM needs a factor: use torch.distributed._make_nccl_premul_sum(factor)")
    raise TypeError(
        "(): incompatible function arguments. The following argument types are supported:\n"
        f"    1. a torch.distributed.ReduceOp\n    2. one of the names {', '.join(_NAMED)}\n\nInvoked with: {op!r}"
    )


def _with_factor(factor: float, kind: dtype) -> Reduced:
    if not kind.is_inexact:
        raise RuntimeError(f"PreMulSum Data type must be half, float, bfloat16 or double, not {kind.name}")
    return "sum", factor
