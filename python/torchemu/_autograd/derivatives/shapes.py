"""Views and copies."""

from __future__ import annotations

from torchemu._autograd.derivative import Derivative, Partial
from torchemu._tensor import copying, views
from torchemu._tensor.dispatch import Op

_SAME_ELEMENTS = Derivative(Partial(lambda c, g: g.reshape(c.shape(0))))

DERIVATIVES: dict[Op, Derivative] = {
    views.VIEW: _SAME_ELEMENTS,
    views.SQUEEZE: _SAME_ELEMENTS,
    views.EXPAND: Derivative(Partial(lambda c, g: g)),
    views.CLONE: Derivative(Partial(lambda c, g: g)),
    copying.TO: Derivative(Partial(lambda c, g: g)),
}
