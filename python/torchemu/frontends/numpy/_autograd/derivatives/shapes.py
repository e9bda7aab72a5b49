"""Views, copies, and tensors put together."""

from __future__ import annotations

import itertools
from typing import Any

from torchemu.frontends.numpy._autograd.call import Call
from torchemu.frontends.numpy._autograd.derivative import Derivative, Joint, Partial
from torchemu.frontends.numpy._autograd.derivatives.elementwise import same, zeros
from torchemu.frontends.numpy._autograd.views import Geometry, spread
from torchemu.frontends.numpy._tensor import copying, joining, parts, views
from torchemu.frontends.numpy._tensor.core import Tensor
from torchemu.frontends.numpy._tensor.dispatch import Op

_SAME = Derivative(Partial(same))
_SAME_ELEMENTS = Derivative(Partial(lambda c, g: g.reshape(c.shape(0))))


def _permute(call: Call, grad: Tensor) -> Tensor:
    (axes,) = call.params
    return grad.permute([axes.index(i) for i in range(len(axes))])


def _as_strided(call: Call, grad: Tensor) -> Tensor:
    view, base = call.params
    return spread(grad, Geometry(*view), Geometry(*base))


# -- parts: zeros but for what they are


def _slice(call: Call, grad: Tensor) -> Tensor:
    whole = grad.new_zeros(call.shape(0))
    whole[call.params[0]] = grad
    return whole


def _narrow(call: Call, grad: Tensor) -> Tensor:
    whole = grad.new_zeros(call.shape(0))
    whole.narrow(*call.params).copy_(grad)
    return whole


def _select(call: Call, grad: Tensor) -> Tensor:
    whole = grad.new_zeros(call.shape(0))
    whole.select(*call.params).copy_(grad)
    return whole


# -- put together


def _cat(call: Call, grad: Tensor) -> list[Any]:
    axis = call.params[0]
    sizes = [call.shape(i)[axis] for i in range(len(call.needs))]
    starts = itertools.accumulate(sizes, initial=0)
    return [
        grad.narrow(axis, a, n) if needed else None for a, n, needed in zip(starts, sizes, call.needs, strict=False)
    ]


def _stack(call: Call, grad: Tensor) -> list[Any]:
    axis = call.params[0]
    return [grad.select(axis, i) if needed else None for i, needed in enumerate(call.needs)]


def _repeat(call: Call, grad: Tensor) -> Tensor:
    """The sum over the repetitions of each dimension."""
    (times,) = call.params
    shape = (1,) * (len(times) - len(call.shape(0))) + call.shape(0)
    if 0 in times:
        return grad.new_zeros(call.shape(0))
    split = [n for pair in zip(times, shape, strict=True) for n in pair]
    return grad.reshape(split).sum(list(range(0, len(split), 2))).reshape(call.shape(0)) if times else grad


DERIVATIVES: dict[Op, Derivative] = {
    views.VIEW: _SAME_ELEMENTS,
    views.SQUEEZE: _SAME_ELEMENTS,
    views.EXPAND: _SAME,
    views.PERMUTE: Derivative(Partial(_permute)),
    views.AS_STRIDED: Derivative(Partial(_as_strided)),
    views.CLONE: _SAME,
    parts.SLICE: Derivative(Partial(_slice)),
    parts.NARROW: Derivative(Partial(_narrow)),
    parts.SELECT: Derivative(Partial(_select)),
    copying.TO: _SAME,
    copying.COPY: Derivative(Partial(zeros), Partial(same)),
    copying.FILL: Derivative(Partial(zeros)),
    joining.CAT: Joint(_cat),
    joining.STACK: Joint(_stack),
    joining.TILE: Derivative(Partial(_repeat)),
}
