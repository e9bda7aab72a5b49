"""Operations on single elements that have parameters or three operands."""

# ruff: noqa: A001, A002 (names are PyTorch's)

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from torchemu.frontends.numpy._autograd import record
from torchemu.frontends.numpy._tensor import dispatch, numerics, promotion
from torchemu.frontends.numpy._tensor.conversion import converted
from torchemu.frontends.numpy._tensor.core import Tensor, method
from torchemu.frontends.numpy._tensor.pointwise import Domain, Plan, Pointwise, pointwise, pointwise_into

__all__ = [
    "clamp",
    "round",
    "where",
]

ROUND = Pointwise("round", np.rint, Domain.NUMBERS, on_integers=np.copy)
ROUND_DECIMALS = Pointwise("round", numerics.rounded, Domain.ONLY_FLOATS)
GELU = Pointwise("gelu", numerics.gelu, Domain.ONLY_FLOATS)


@method
def round(input: Tensor, *, decimals: int = 0) -> Tensor:
    """Rounded to so many decimals, halves to even."""
    return pointwise(*rounding(input, decimals))


def rounding(input: Tensor, decimals: int) -> tuple[Any, ...]:
    """The arguments of pointwise for round."""
    return (ROUND_DECIMALS, (input,), decimals) if decimals else (ROUND, (input,))


def gelu(input: Tensor, approximate: str = "none") -> Tensor:
    """x·Φ(x), Φ being the normal distribution function; "tanh" approximates it.

    Raises:
        RuntimeError: another approximation.
    """
    if approximate not in ("none", "tanh"):
        raise RuntimeError("approximate argument must be either none or tanh.")
    return pointwise(GELU, (input,), approximate)


# -- three operands

CLAMPS = {
    (True, False): Pointwise("clamp", np.maximum, Domain.NUMBERS),
    (False, True): Pointwise("clamp", np.minimum, Domain.NUMBERS),
    (True, True): Pointwise("clamp", lambda x, low, high: np.minimum(np.maximum(x, low), high), Domain.NUMBERS),
}


def clamping(input: Tensor, min: Any, max: Any) -> tuple[Any, ...]:
    """The arguments of pointwise for clamp."""
    if min is None and max is None:
        raise RuntimeError("torch.clamp: At least one of 'min' or 'max' must not be None")
    op = CLAMPS[min is not None, max is not None]
    return op, tuple(x for x in (input, min, max) if x is not None)


@method
def clamp(input: Tensor, min: Any = None, max: Any = None, *, out: Tensor | None = None) -> Tensor:
    """Moved into [min, max]; both may be tensors, and one may be missing."""
    call = clamping(input, min, max)
    return pointwise(*call) if out is None else pointwise_into(out, *call)


WHERE = Pointwise("where", lambda a, b, chosen: np.where(chosen, a, b))


def where(condition: Tensor, input: Any = None, other: Any = None, *, out: Tensor | None = None) -> Any:
    """input where condition is true and other elsewhere; with a condition only, what nonzero(as_tuple=True) gives.

    Raises:
        RuntimeError: condition is not of bool, or the shapes do not broadcast.
    """
    if input is None and other is None:
        return condition.nonzero(as_tuple=True)
    if condition.dtype.name not in ("bool", "uint8"):
        raise RuntimeError(
            f"where expected condition to be a boolean tensor, but got a tensor with dtype {condition.dtype.title}"
        )
    plan = WHERE.plan((promotion.key(input), promotion.key(other)))
    chosen = condition if condition.dtype.name == "bool" else condition.bool()
    return dispatch.stored(WHERE, _where((chosen, input, other), plan), out)


def _where(operands: tuple[Any, ...], plan: Plan) -> Tensor:
    first, arrays, tracked = dispatch.read(operands)
    choose = functools.partial(dispatch.broadcasting, functools.partial(_choose, plan.arithmetic))
    if arrays is None:
        return dispatch.called_later(WHERE, operands, (), lambda *args: (choose(*args),), [plan.kind])[0]
    like = operands[1] if isinstance(operands[1], Tensor) else first
    result = dispatch.wrapped(choose(*arrays), plan.kind, like)
    dispatch._done(WHERE, (result,), operands, ())
    if tracked:
        record.record(WHERE, (result,), operands, ())
    return result


def _choose(arithmetic: np.dtype, mask: np.ndarray, a: Any, b: Any) -> np.ndarray:
    return np.where(mask, *[converted(np.asarray(x), arithmetic) for x in (a, b)])
