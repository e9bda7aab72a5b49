"""Elements taken from, and put to, places; elements in another order; random numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

from torchemu.frontends.numpy._autograd.call import Call
from torchemu.frontends.numpy._autograd.derivative import OTHERS, Derivative, Joint, Partial
from torchemu.frontends.numpy._autograd.derivatives.elementwise import same, zeros
from torchemu.frontends.numpy._tensor import gathering, indexing, random_numbers
from torchemu.frontends.numpy._tensor.core import Tensor
from torchemu.frontends.numpy._tensor.dispatch import Op

# -- square brackets


def _keys(call: Call, first: int) -> tuple[Any, ...]:
    return tuple([call[i] for i in range(first, len(call.operands))])


def _index(call: Call, grad: Tensor) -> list[Any]:
    whole = grad.new_zeros(call.shape(0))
    indexing.put(whole, _keys(call, 1), grad, indexing.INDEX_PUT_ADD)
    return [whole]


def _index_put(call: Call, grad: Tensor) -> list[Any]:
    keys = _keys(call, 2)
    before = None
    if call.needs[0]:
        before = grad.clone()
        indexing.put(before, keys, 0, indexing.INDEX_PUT)
    return [before, grad[keys] if call.needs[1] else None]


# -- masks


def _masked_select(call: Call, grad: Tensor) -> Tensor:
    mask = call[1]
    shape = np.broadcast_shapes(call.shape(0), mask._shape)
    whole = grad.new_zeros(shape)
    whole[mask.expand(shape)] = grad
    return whole


_MASKED_FILL = Derivative(
    Partial(lambda c, g: g.masked_fill(c[1], 0), 1),
    Partial(lambda c, g: None),
    Partial(lambda c, g: (g * c[1]).sum(), 1),
)


# -- along a dimension


def _index_select(call: Call, grad: Tensor) -> Tensor:
    shape, index = call.shape(0), call[1]
    if not shape:
        return grad.sum()
    return grad.new_zeros(shape).index_add_(call.params[0], index.reshape(-1), grad)


def _gather(call: Call, grad: Tensor) -> Tensor:
    return grad.new_zeros(call.shape(0)).scatter_add_(call.params[0], call[1], grad)


def _source(call: Call, grad: Tensor) -> Any:
    """Of what scatter puts: what has arrived there."""
    axis = call.params[0]
    taken = grad.gather(axis, call[1])
    if taken._shape == call.shape(2):
        return taken
    whole = grad.new_zeros(call.shape(2))
    whole[tuple([slice(n) for n in taken._shape])] = taken
    return whole


def _rows(call: Call, grad: Tensor) -> Tensor:
    return grad.index_select(call.params[0], call[1].reshape(-1)).reshape(call.shape(2))


def _index_add_source(call: Call, grad: Tensor) -> Tensor:
    rows = _rows(call, grad)
    return rows if call.params[1] == 1 else rows * call.params[1]


_DRAWN = (random_numbers.UNIFORM, random_numbers.NORMAL, random_numbers.RANDOM, random_numbers.BERNOULLI)

DERIVATIVES: dict[Op, Derivative] = {
    indexing.INDEX: Joint(_index, OTHERS),
    indexing.INDEX_PUT: Joint(_index_put, OTHERS),
    indexing.MASKED_FILL: _MASKED_FILL,
    indexing.MASKED_FILLED: _MASKED_FILL,
    indexing.MASKED_SELECT: Derivative(Partial(_masked_select, 1)),
    gathering.INDEX_SELECT: Derivative(Partial(_index_select, 1)),
    gathering.GATHER: Derivative(Partial(_gather, 1)),
    gathering.SCATTER: Derivative(
        Partial(lambda c, g: g.scatter(c.params[0], c[1], 0), 1), Partial(lambda c, g: None), Partial(_source, 1)
    ),
    gathering.SCATTER_ADD: Derivative(Partial(same), Partial(lambda c, g: None), Partial(_source, 1)),
    gathering.INDEX_ADD: Derivative(Partial(same), Partial(lambda c, g: None), Partial(_index_add_source, 1)),
    gathering.FLIP: Derivative(Partial(lambda c, g: g.flip(*c.params))),
    gathering.TRIL: Derivative(Partial(lambda c, g: g.tril(*c.params))),
    gathering.TRIU: Derivative(Partial(lambda c, g: g.triu(*c.params))),
    **dict.fromkeys(_DRAWN, Derivative(Partial(zeros))),  # what was there before counts no more
}
