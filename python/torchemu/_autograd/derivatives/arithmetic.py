"""Operations on single elements."""

from __future__ import annotations

from torchemu._autograd.derivative import RESULT, Derivative, Partial
from torchemu._tensor.dispatch import Op
from torchemu._tensor.elementwise import BINARY, UNARY

DERIVATIVES: dict[Op, Derivative] = {
    BINARY["add"]: Derivative(Partial(lambda c, g: g), Partial(lambda c, g: g)),
    BINARY["sub"]: Derivative(Partial(lambda c, g: g), Partial(lambda c, g: -g)),
    BINARY["mul"]: Derivative(Partial(lambda c, g: g * c[1], 1), Partial(lambda c, g: g * c[0], 0)),
    BINARY["div"]: Derivative(
        Partial(lambda c, g: g / c[1], 1), Partial(lambda c, g: -g * ((c[0] / c[1]) / c[1]), 0, 1)
    ),
    UNARY["neg"]: Derivative(Partial(lambda c, g: -g)),
    UNARY["exp"]: Derivative(Partial(lambda c, g: g * c.result, RESULT)),
}
