"""Operations on single elements that have parameters or three operands."""

# ruff: noqa: A001, A002 (names are PyTorch's)

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from torchemu.frontends.numpy._autograd import record
from torchemu.frontends.numpy._limits import finfo
from torchemu.frontends.numpy._tensor import dispatch, numerics, promotion
from torchemu.frontends.numpy._tensor.conversion import converted
from torchemu.frontends.numpy._tensor.core import METHODS, Tensor, method
from torchemu.frontends.numpy._tensor.pointwise import Domain, Plan, Pointwise, pointwise, pointwise_into

__all__ = [
    "addcdiv",
    "addcmul",
    "clamp",
    "clamp_max",
    "clamp_min",
    "clip",
    "lerp",
    "logit",
    "nan_to_num",
    "round",
    "where",
]

ROUND = Pointwise("round", np.rint, Domain.NUMBERS, on_integers=np.copy)
ROUND_DECIMALS = Pointwise("round", numerics.rounded, Domain.ONLY_FLOATS)
GELU = Pointwise("gelu", numerics.gelu, Domain.ONLY_FLOATS)
LOGIT = Pointwise("logit", numerics.logit, Domain.FLOATS)
SOFTPLUS = Pointwise("softplus", numerics.softplus, Domain.ONLY_FLOATS)


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


@method
def logit(input: Tensor, eps: float | None = None) -> Tensor:
    """log(x/(1-x)), of x moved into [eps, 1-eps] where eps is given."""
    return pointwise(LOGIT, (input,), eps)


def softplus(input: Tensor, beta: float = 1, threshold: float = 20) -> Tensor:
    """log(1+e^(βx))/β, and x where βx is above the threshold."""
    return pointwise(SOFTPLUS, (input,), beta, threshold)


def _nan_to_num(x: np.ndarray, nan: float, posinf: float | None, neginf: float | None) -> np.ndarray:
    return np.nan_to_num(x, nan=nan, posinf=posinf, neginf=neginf)


NAN_TO_NUM = Pointwise("nan_to_num", _nan_to_num, on_integers=lambda x, *_: x.copy(), on_complex=True)


@method
def nan_to_num(
    input: Tensor,
    nan: float = 0.0,
    posinf: float | None = None,
    neginf: float | None = None,
) -> Tensor:
    """With numbers instead of NaN and the infinities; None is the largest, or smallest, number of the dtype."""
    return pointwise(NAN_TO_NUM, (input,), *finite_bounds(input, nan, posinf, neginf))


def finite_bounds(t: Tensor, nan: float, posinf: float | None, neginf: float | None) -> tuple[Any, ...]:
    """The numbers that nan_to_num puts in."""
    if not t.dtype.is_inexact:
        return nan, posinf, neginf
    limits = finfo(t.dtype)
    return nan, limits.max if posinf is None else posinf, limits.min if neginf is None else neginf


# -- three operands

CLAMPS = {
    (True, False): Pointwise("clamp", np.maximum, Domain.NUMBERS),
    (False, True): Pointwise("clamp", np.minimum, Domain.NUMBERS),
    (True, True): Pointwise("clamp", lambda x, low, high: np.minimum(np.maximum(x, low), high), Domain.NUMBERS),
}
ADDCMUL = Pointwise("addcmul", lambda x, a, b, value: x + a * b * value, on_complex=True)
ADDCDIV = Pointwise("addcdiv", lambda x, a, b, value: x + a / b * value, Domain.ONLY_FLOATS, on_complex=True)
LERP = Pointwise("lerp", numerics.lerp, Domain.ONLY_FLOATS, on_complex=True)


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


@method
def clamp_min(input: Tensor, min: Any) -> Tensor:
    """clamp without an upper bound."""
    return clamp(input, min=min)


@method
def clamp_max(input: Tensor, max: Any) -> Tensor:
    """clamp without a lower bound."""
    return clamp(input, max=max)


@method
def addcmul(input: Tensor, tensor1: Any, tensor2: Any, *, value: float = 1) -> Tensor:
    """input + value·tensor1·tensor2."""
    return pointwise(ADDCMUL, (input, tensor1, tensor2), value)


@method
def addcdiv(input: Tensor, tensor1: Any, tensor2: Any, *, value: float = 1) -> Tensor:
    """input + value·tensor1/tensor2."""
    return pointwise(ADDCDIV, (input, tensor1, tensor2), value)


@method
def lerp(input: Tensor, end: Tensor, weight: Any) -> Tensor:
    """input + weight·(end - input)."""
    return pointwise(LERP, (input, end, weight))


WHERE = Pointwise("where", lambda a, b, chosen: np.where(chosen, a, b), on_complex=True)


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


clip = clamp

METHODS.update(clip=clip)
