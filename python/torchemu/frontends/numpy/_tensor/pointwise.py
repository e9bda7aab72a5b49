"""Operations on single elements of operands that broadcast: how they are called. Which there are is in elementwise.py.

What dtypes the operands of a call have decides its plan: in which dtype to calculate, and what the result has. Plans
are made once and kept.
"""

from __future__ import annotations

import enum
import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from torchemu import dtypes
from torchemu.dtypes import Category
from torchemu.frontends.numpy import _settings
from torchemu.frontends.numpy._autograd import record
from torchemu.frontends.numpy._autograd.derivative import Derivative
from torchemu.frontends.numpy._tensor import dispatch, promotion
from torchemu.frontends.numpy._tensor.conversion import check_real, converted, quietly
from torchemu.frontends.numpy._tensor.core import Tensor


class Domain(enum.Enum):
    """The operands that an operation calculates with."""

    ANY = "any dtype"
    NUMBERS = "no bool"
    FLOATS = "integers become floats"
    ONLY_FLOATS = "no integers"
    INTEGERS = "integers and bool"
    ONLY_INTEGERS = "integers"


class Result(enum.Enum):
    """The dtype of an operation's result."""

    SAME = "the one that the operands meet in"
    BOOL = "bool"


class Plan(NamedTuple):
    """The way to do a call on operands of certain dtypes."""

    function: Callable[..., Any]
    arithmetic: np.dtype  # of the operands' arrays
    kind: dtypes.dtype  # of the result
    wraps: bool  # whether a Python number must first have so few bits: NumPy compares it as it is


class Pointwise(dispatch.Op):
    """An operation on single elements.

    Args:
        name: as for Op.
        compute: calculates with NumPy, from arrays of one dtype, numbers and the call's parameters.
        domain: what it calculates with.
        result: what dtype its result has.
        on_integers: what to use instead of compute for integers and bool.
        refusal: what to say about a dtype that it is not for; else PyTorch's usual words.
        no_bool_operand: what to say about a single operand of bool; else there may be such.
        derivative: as for Op.
    """

    __slots__ = ("_domain", "_no_bool_operand", "_on_integers", "_plans", "_refusal", "_result")

    def __init__(
        self,
        name: str,
        compute: Callable[..., Any],
        domain: Domain = Domain.ANY,
        result: Result = Result.SAME,
        on_integers: Callable[..., Any] | None = None,
        refusal: str = "",
        no_bool_operand: str = "",
        derivative: Derivative | None = None,
    ) -> None:
        super().__init__(name, compute, derivative=derivative)
        self._no_bool_operand = no_bool_operand
        self._domain, self._result, self._on_integers, self._refusal = domain, result, on_integers, refusal
        self._plans: dict[Any, Plan] = {}

    def plan(self, keys: tuple[Any, ...]) -> Plan:
        """Returns the way for operands of these promotion keys."""
        plan = self._plans.get(keys)
        if plan is None:
            plan = self._planned(keys)
            if not promotion.depends_on_default(keys) and not self._makes_default(keys):
                self._plans[keys] = plan
        return plan

    def _makes_default(self, keys: tuple[Any, ...]) -> bool:
        return self._domain is Domain.FLOATS and not promotion.of_keys(keys).is_floating_point

    def _planned(self, keys: tuple[Any, ...]) -> Plan:
        self._check_operands(keys)
        kind = promotion.of_keys(keys)
        if self._domain is Domain.FLOATS and not kind.is_floating_point:
            kind = _settings.current().dtype
        self._check(kind)
        compares = self._result is Result.BOOL
        wraps = compares and kind.category is Category.INTEGER and kind is not dtypes.int64
        function = self._on_integers if self._on_integers is not None and not kind.is_floating_point else self.compute
        return Plan(function, kind.arithmetic, dtypes.bool_ if compares else kind, wraps)

    def _check_operands(self, keys: tuple[Any, ...]) -> None:
        if self._no_bool_operand and len(keys) > 1:
            bools = sum(k is bool or getattr(k, "dtype", k) is dtypes.bool_ for k in keys)
            if bools:
                raise NotImplementedError(self._refusal if bools > 1 else self._no_bool_operand)

    def _check(self, kind: dtypes.dtype) -> None:
        check_real(kind)
        if kind.is_float8 and self._result is not Result.BOOL:
            raise dispatch.not_implemented(self.name, kind)
        wrong = {
            Domain.NUMBERS: kind.category is Category.BOOL,
            Domain.ONLY_FLOATS: not kind.is_floating_point,
            Domain.INTEGERS: kind.is_floating_point,
            Domain.ONLY_INTEGERS: kind.category is not Category.INTEGER,
        }
        if wrong.get(self._domain, False):
            if self._refusal:
                raise NotImplementedError(self._refusal)
            raise dispatch.not_implemented(self.name, kind)


def pointwise(op: Pointwise, operands: tuple[Any, ...], *params: Any) -> Tensor:
    """Calls an operation.

    Raises:
        TypeError: an operand is neither a tensor nor a number.
        NotImplementedError: the operation is not for these dtypes.
        RuntimeError: the shapes do not broadcast, or the tensors are on different devices.
    """
    plan = op.plan(_keys(op, operands))
    first, arrays, tracked = dispatch.read(operands)
    if arrays is None:
        n = len(operands)
        return dispatch.called_later(
            op, operands, params, lambda *args: (_computed(plan, list(args[:n]), args[n:]),), (plan.kind,)
        )[0]
    result = dispatch.wrapped(_computed(plan, arrays, params), plan.kind, first)
    dispatch._done(op, (result,), operands, params)
    if tracked:
        record.record(op, (result,), operands, params)
    return result


def pointwise_into(target: Tensor, op: Pointwise, operands: tuple[Any, ...], *params: Any) -> Tensor:
    """Calls an operation and stores its result in an existing tensor.

    Raises:
        as pointwise; RuntimeError also where the result's shape is another or its dtype cannot become the target's.
    """
    plan = op.plan(_keys(op, operands))
    check_cast(plan.kind, target)
    dispatch.check_writable(target)
    _, arrays, tracked = dispatch.read(operands)
    if arrays is None or (target._storage.unsettled and not target._settles(writes=True)):
        return _into_later(target, op, plan, operands, params)
    call = None
    if tracked or target._storage.tracked:
        call = _before_write(op, target, operands, params)
        arrays = dispatch.read(operands)[1]  # that may have been an operation
    _into(target._write(), op, plan, arrays, params)
    dispatch._done(op, (target,), operands, params)
    dispatch.written(target, call)
    return target


def _into(array: np.ndarray, op: Pointwise, plan: Plan, arrays: list[Any], params: tuple[Any, ...]) -> None:
    """Computes into an array."""
    if array.dtype is plan.arithmetic and type(plan.function) is np.ufunc and _fits(arrays, array.shape):
        quietly(functools.partial(plan.function, out=array), *_operands(plan, arrays))
    else:
        result = _computed(plan, arrays, params)
        dispatch.store(array, quietly(converted, np.asarray(result), plan.kind.numpy), op)


def _into_later(
    target: Tensor, op: Pointwise, plan: Plan, operands: tuple[Any, ...], params: tuple[Any, ...]
) -> Tensor:
    """pointwise_into where elements are not known."""
    call = None
    if any(t._storage.tracked for t in (target, *operands) if isinstance(t, Tensor)):
        call = _before_write(op, target, operands, params)
    n = len(operands)
    dispatch.written_later(
        op, (target,), operands, lambda array, *args: _into(array, op, plan, list(args[:n]), args[n:]), params
    )
    dispatch.written(target, call)
    return target


def _before_write(op: Pointwise, target: Tensor, operands: tuple[Any, ...], params: tuple[Any, ...]) -> Any:
    if operands[0] is not target:
        record.refuse_out(op, (target, *operands))
        return None
    return record.before_write(op, target, operands, params)


def check_cast(kind: dtypes.dtype, target: Tensor) -> None:
    """Raises:
    RuntimeError: a result of that dtype may not be stored in the target.
    """
    if not promotion.can_cast(kind, target.dtype):
        raise RuntimeError(f"result type {kind.title} can't be cast to the desired output type {target.dtype.title}")


def _fits(arrays: list[Any], shape: tuple[int, ...]) -> bool:
    return all(a.shape == shape or not a.shape for a in arrays if isinstance(a, np.ndarray))


def _keys(op: Pointwise, operands: tuple[Any, ...]) -> tuple[Any, ...]:
    try:
        return tuple([
            (x.dtype if x._shape else x.dtype.zero_dim) if isinstance(x, Tensor) else promotion.key(x)
            for x in operands
        ])  # fmt: skip
    except TypeError:
        at, wrong = next((i, x) for i, x in enumerate(operands) if not isinstance(x, (Tensor, *dtypes.NUMBERS)))
        name = "input" if at == 0 else "other"
        raise TypeError(
            f"{op.name}(): argument '{name}' (position {at + 1}) must be Tensor, not {type(wrong).__name__}"
        ) from None


def _operands(plan: Plan, arrays: list[Any]) -> list[Any]:
    kind = plan.arithmetic
    if plan.wraps:
        arrays = _with_low_bits(plan, arrays)
    return [x if not isinstance(x, np.ndarray) or x.dtype is kind else quietly(converted, x, kind) for x in arrays]


def _computed(plan: Plan, arrays: list[Any], params: tuple[Any, ...]) -> Any:
    try:
        return dispatch.broadcasting(plan.function, *_operands(plan, arrays), *params)
    except OverflowError:  # a Python number that does not fit: its low bits count
        return quietly(plan.function, *_operands(plan, _with_low_bits(plan, arrays)), *params)


def _with_low_bits(plan: Plan, arrays: list[Any]) -> list[Any]:
    """The operands, of Python numbers only the bits that the dtype has."""
    return [x if isinstance(x, np.ndarray) else np.asarray(x).astype(plan.arithmetic) for x in arrays]
