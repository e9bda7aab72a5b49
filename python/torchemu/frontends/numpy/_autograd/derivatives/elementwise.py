"""Operations on single elements.

Where PyTorch finds a gradient by one operation of its own, so do these tables: it costs one kernel.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from torchemu.frontends.numpy._autograd.call import Call
from torchemu.frontends.numpy._autograd.derivative import RESULT, Derivative, Partial
from torchemu.frontends.numpy._tensor import numerics
from torchemu.frontends.numpy._tensor.core import Tensor
from torchemu.frontends.numpy._tensor.dispatch import Op
from torchemu.frontends.numpy._tensor.elementwise import BINARY, UNARY
from torchemu.frontends.numpy._tensor.parametric import where
from torchemu.frontends.numpy._tensor.pointwise import Pointwise, pointwise


def zeros(call: Call, grad: Tensor) -> Tensor:
    """Of what is constant but for its steps."""
    return grad.new_zeros(grad._shape)


def same(call: Call, grad: Tensor) -> Tensor:
    """Of what the result changes as much as the operand."""
    return grad


def only(condition: Tensor, grad: Tensor) -> Tensor:
    """The gradient where the condition holds, and zeros."""
    return where(condition, grad, 0.0)


def times(factor: Any, t: Tensor) -> Tensor:
    """A product; with 1 at no cost."""
    return t if factor == 1 else t * factor


# -- with operations of their own


def _where_positive(grad: np.ndarray, result: np.ndarray) -> np.ndarray:
    """The gradient where the result is positive, else 0: a product of bits, which takes a tenth of np.where's time."""
    return (grad.view(f"u{grad.itemsize}") * (result > 0)).view(grad.dtype)


THRESHOLD_BACKWARD = Pointwise("threshold_backward", _where_positive)
SIGMOID_BACKWARD = Pointwise("sigmoid_backward", lambda grad, result: grad * result * (1 - result))
TANH_BACKWARD = Pointwise("tanh_backward", lambda grad, result: grad * (1 - result * result))


def _silu_backward(grad: np.ndarray, x: np.ndarray) -> np.ndarray:
    s = numerics.sigmoid(x)
    return grad * s * (1 + x * (1 - s))


SILU_BACKWARD = Pointwise("silu_backward", _silu_backward)


_UNARY: dict[str, Derivative] = {
    "abs": Derivative(Partial(lambda c, g: g * c[0].sign(), 0)),
    "neg": Derivative(Partial(lambda c, g: -g)),
    "sign": Derivative(Partial(zeros)),
    "square": Derivative(Partial(lambda c, g: g * (c[0] * 2.0), 0)),
    "reciprocal": Derivative(Partial(lambda c, g: -g * (c.result * c.result), RESULT)),
    "sqrt": Derivative(Partial(lambda c, g: g / (2 * c.result), RESULT)),
    "rsqrt": Derivative(Partial(lambda c, g: -0.5 * g * c.result**3, RESULT)),
    "exp": Derivative(Partial(lambda c, g: g * c.result, RESULT)),
    "expm1": Derivative(Partial(lambda c, g: g * (c.result + 1), RESULT)),
    "log": Derivative(Partial(lambda c, g: g / c[0], 0)),
    "log2": Derivative(Partial(lambda c, g: g / (c[0] * math.log(2)), 0)),
    "log1p": Derivative(Partial(lambda c, g: g / (c[0] + 1), 0)),
    "sin": Derivative(Partial(lambda c, g: g * c[0].cos(), 0)),
    "cos": Derivative(Partial(lambda c, g: g * -c[0].sin(), 0)),
    "tanh": Derivative(Partial(lambda c, g: pointwise(TANH_BACKWARD, (g, c.result)), RESULT)),
    "sigmoid": Derivative(Partial(lambda c, g: pointwise(SIGMOID_BACKWARD, (g, c.result)), RESULT)),
    "erf": Derivative(Partial(lambda c, g: 2 / math.sqrt(math.pi) * (-(c[0] * c[0])).exp() * g, 0)),
    "relu": Derivative(Partial(lambda c, g: pointwise(THRESHOLD_BACKWARD, (g, c.result)), RESULT)),
    "silu": Derivative(Partial(lambda c, g: pointwise(SILU_BACKWARD, (g, c[0])), 0)),
    "floor": Derivative(Partial(zeros)),
    "ceil": Derivative(Partial(zeros)),
    "trunc": Derivative(Partial(zeros)),
}


# -- two operands


def _pow_base(call: Call, grad: Tensor) -> Any:
    x, exponent = call[0], call[1]
    if isinstance(exponent, Tensor):
        return where(exponent == 0, 0.0, grad * (exponent * x.pow(exponent - 1)))
    return zeros(call, grad) if exponent == 0 else grad * (exponent * x.pow(exponent - 1))


def _pow_exponent(call: Call, grad: Tensor) -> Any:
    x, exponent, result = call[0], call[1], call.result
    if isinstance(x, Tensor):
        return grad * where((x == 0) & (exponent >= 0), 0.0, result * x.to(result.dtype).log())
    if x == 0:
        return grad * where(exponent >= 0, 0.0, result * -math.inf)
    return grad * (result * (math.log(x) if x > 0 else math.nan))


def _larger(sign: int) -> Derivative:
    """Of maximum, and with -1 of minimum: equal operands have half of it each."""

    def of(mine: int) -> Partial:
        def formula(call: Call, grad: Tensor) -> Any:
            a, b = call[mine], call[1 - mine]
            loses = a < b if sign > 0 else a > b
            return where(a == b, grad / 2, grad).masked_fill(loses, 0)

        return Partial(formula, 0, 1)

    return Derivative(of(0), of(1))


_BINARY: dict[str, Derivative] = {
    "add": Derivative(Partial(same), Partial(same)),
    "sub": Derivative(Partial(same), Partial(lambda c, g: -g)),
    "mul": Derivative(Partial(lambda c, g: g * c[1], 1), Partial(lambda c, g: g * c[0], 0)),
    "div": Derivative(Partial(lambda c, g: g / c[1], 1), Partial(lambda c, g: -g * ((c[0] / c[1]) / c[1]), 0, 1)),
    "div_trunc": Derivative(Partial(zeros), Partial(zeros)),
    "remainder": Derivative(Partial(same), Partial(lambda c, g: -g * (c[0] / c[1]).floor(), 0, 1)),
    "pow": Derivative(Partial(_pow_base, 0, 1), Partial(_pow_exponent, 0, 1, RESULT)),
    "maximum": _larger(1),
    "minimum": _larger(-1),
}

DERIVATIVES: dict[Op, Derivative] = {
    **{UNARY[name]: derivative for name, derivative in _UNARY.items()},
    **{BINARY[name]: derivative for name, derivative in _BINARY.items()},
}
