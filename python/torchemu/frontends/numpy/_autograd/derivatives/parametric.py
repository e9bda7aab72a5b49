"""Operations on single elements that have parameters or three operands."""

from __future__ import annotations

import math

import numpy as np

from torchemu.frontends.numpy._autograd.derivative import Derivative, Partial
from torchemu.frontends.numpy._autograd.derivatives.elementwise import only, same, zeros
from torchemu.frontends.numpy._tensor import elementwise, numerics, parametric
from torchemu.frontends.numpy._tensor.dispatch import Op
from torchemu.frontends.numpy._tensor.pointwise import Domain, Pointwise, pointwise

_OF_NORMAL = 1 / math.sqrt(2 * math.pi)


def _gelu_backward(grad: np.ndarray, x: np.ndarray, approximate: str) -> np.ndarray:
    if approximate == "tanh":
        slope = math.sqrt(2 / math.pi) * (1 + 3 * 0.044715 * x * x)
        t = np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x * x * x))
        return grad * (0.5 * (1 + t) + 0.5 * x * (1 - t * t) * slope)
    return grad * (0.5 * (1 + numerics.erf(x * math.sqrt(0.5))) + x * np.exp(-0.5 * x * x) * _OF_NORMAL)


GELU_BACKWARD = Pointwise("gelu_backward", _gelu_backward, Domain.ONLY_FLOATS)


def _clamp(low: bool, high: bool) -> Derivative:
    """Of clamp with these bounds: an element between them has the gradient, one beyond hands it to the bound."""
    if not high:
        return Derivative(
            Partial(lambda c, g: only(c[0] >= c[1], g), 0, 1), Partial(lambda c, g: only(c[0] < c[1], g), 0, 1)
        )
    if not low:
        return Derivative(
            Partial(lambda c, g: only(c[0] <= c[1], g), 0, 1), Partial(lambda c, g: only(c[0] > c[1], g), 0, 1)
        )
    return Derivative(
        Partial(lambda c, g: only((c[0] >= c[1]) & (c[0] <= c[2]), g), 0, 1, 2),
        Partial(lambda c, g: only((c[0] < c[1]) & (c[1] < c[2]), g), 0, 1, 2),
        Partial(lambda c, g: only((c[0] > c[2]) | (c[2] < c[1]), g), 0, 1, 2),
    )


def _scaled(sign: int) -> Derivative:
    """Of add and sub with alpha."""
    return Derivative(Partial(same), Partial(lambda c, g: g * (sign * c.params[0])))


DERIVATIVES: dict[Op, Derivative] = {
    **{op: _clamp(*bounds) for bounds, op in parametric.CLAMPS.items()},
    elementwise.SCALED["add"]: _scaled(1),
    elementwise.SCALED["sub"]: _scaled(-1),
    parametric.ROUND: Derivative(Partial(zeros)),
    parametric.ROUND_DECIMALS: Derivative(Partial(zeros)),
    parametric.GELU: Derivative(Partial(lambda c, g: pointwise(GELU_BACKWARD, (g, c[0]), *c.params), 0)),
    parametric.WHERE: Derivative(
        Partial(zeros),
        Partial(lambda c, g: only(c[0], g), 0),
        Partial(lambda c, g: parametric.where(c[0], 0.0, g), 0),
    ),
}
