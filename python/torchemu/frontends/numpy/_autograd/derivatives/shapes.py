"""Views, copies, and tensors put together."""

from __future__ import annotations

import itertools
from typing import Any

from torchemu import dtypes
from torchemu.frontends.numpy._autograd.call import Call
from torchemu.frontends.numpy._autograd.derivative import RESULT, Derivative, Joint, Partial, Wirtinger
from torchemu.frontends.numpy._autograd.derivatives.elementwise import same, zeros
from torchemu.frontends.numpy._autograd.views import Geometry, spread
from torchemu.frontends.numpy._tensor import complex_numbers, copying, joining, parts, views
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


def _block_diag(call: Call, grad: Tensor) -> list[Any]:
    found: list[Any] = []
    row = column = 0
    for i, needed in enumerate(call.needs):
        rows, columns = call.shape(i)
        found.append(grad.narrow(0, row, rows).narrow(1, column, columns) if needed else None)
        row, column = row + rows, column + columns
    return found


def _repeat(call: Call, grad: Tensor) -> Tensor:
    """The sum over the repetitions of each dimension."""
    (times,) = call.params
    shape = (1,) * (len(times) - len(call.shape(0))) + call.shape(0)
    if 0 in times:
        return grad.new_zeros(call.shape(0))
    split = [n for pair in zip(times, shape, strict=True) for n in pair]
    return grad.reshape(split).sum(list(range(0, len(split), 2))).reshape(call.shape(0)) if times else grad


def _repeat_interleave(call: Call, grad: Tensor) -> Tensor:
    repeats, axis = call.params
    n = call.shape(0)[axis]
    if isinstance(repeats, int):
        split = [*grad._shape[:axis], n, repeats, *grad._shape[axis + 1 :]]
        return grad.reshape(split).sum(axis + 1)
    counts = grad.new_tensor(repeats.reshape(-1).tolist(), dtype=dtypes.int64).expand(n)
    return grad.new_zeros(call.shape(0)).index_add(axis, joining.repeat_interleave(counts), grad)


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
    joining.BLOCK_DIAG: Joint(_block_diag),
    joining.TILE: Derivative(Partial(_repeat)),
    joining.REPEAT_INTERLEAVE: Derivative(Partial(_repeat_interleave)),
    complex_numbers.CONJ: Wirtinger(Partial(lambda c, g: g.conj())),
    complex_numbers.PART: Wirtinger(Partial(lambda c, g: g * (1j if c.params[0] else 1 + 0j))),
    complex_numbers.VIEW_AS_REAL: Wirtinger(Partial(lambda c, g: complex_numbers.view_as_complex(g.contiguous()))),
    complex_numbers.VIEW_AS_COMPLEX: Wirtinger(Partial(lambda c, g: complex_numbers.view_as_real(g))),
    complex_numbers.COMPLEX: Wirtinger(Partial(lambda c, g: g.real), Partial(lambda c, g: g.imag)),
    complex_numbers.POLAR: Wirtinger(
        Partial(lambda c, g: (g * complex_numbers.polar(c[1].new_ones(()), -c[1])).real, 1),
        Partial(lambda c, g: (g * c.result.conj()).imag, RESULT),
    ),
}
