"""The bytes and the operations of products of matrices.

How large tiles are, what is read again for each, and how long they take is the Go core's model (network.MatMulCost).
"""

from __future__ import annotations

import functools
import math

from torchemu.bridge.binding import go
from torchemu.frontends.numpy._tensor.core import Tensor
from torchemu.frontends.numpy._tensor.dispatch import Inputs, Outputs, bytes_of

Products = tuple[int, int, int, int, str]
"""So many products [m, k]·[k, n]: their number, m, n, k, and the layout of the operands, by rows, n, or columns, t."""


@functools.lru_cache(maxsize=4096)
def _cost(world: int, topology: str, kind: str, count: int, m: int, n: int, k: int, layout: str) -> tuple[int, int]:
    """The bytes and the operations of products of a dtype on a SIP of a World, which the core is asked for once."""
    return count * go.MatMulBytes(world, kind, m, n, k), go.MatMulOps(world, kind, count, m, n, k, layout)


def _traffic(result: Tensor, products: Products) -> int:
    """The bytes of products on the device of the result, in its dtype."""
    world = result._storage.world
    return _cost(world.handle, world.topology, result.dtype.name, *products)[0]


def _work(result: Tensor, products: Products) -> int:
    """The operations of products on the device of the result, in its dtype."""
    world = result._storage.world
    return _cost(world.handle, world.topology, result.dtype.name, *products)[1]


def _products(outputs: Outputs, inputs: Inputs) -> Products:
    """Returns the products of matmul: a stack of matrices, or of vectors, times one of matrices, or one matrix, or a
    vector."""
    a, b = inputs[:2]
    k = a._shape[-1] if a._shape else 1
    n = b._shape[-1] if len(b._shape) > 1 else 1
    if len(b._shape) <= 2:
        return 1, math.prod(a._shape[:-1]), n, k, _lies(a) + _lies(b)
    m = a._shape[-2] if len(a._shape) > 1 else 1
    return math.prod(outputs[0]._shape) // max(m * n, 1), m, n, k, _lies(a) + _lies(b)


def _of_weight(inputs: Inputs) -> Products:
    """Returns the products of input @ weightᵀ."""
    x, weight = inputs[:2]
    layout = _lies(x) + ("n" if _lies(weight) == "t" else "t")
    return 1, math.prod(x._shape[:-1]), math.prod(weight._shape[:-1]), x._shape[-1], layout


def _lies(matrix: Tensor) -> str:
    """Returns t where the elements of a column lie one after the other in memory, and n where those of a row do."""
    steps = matrix._strides
    return "t" if steps is not None and len(steps) > 1 and steps[-2] == 1 != steps[-1] else "n"


def product_traffic(outputs: Outputs, inputs: Inputs) -> int:
    """The bytes of matmul."""
    return _traffic(outputs[0], _products(outputs, inputs))


def product_work(outputs: Outputs, inputs: Inputs) -> int:
    """The operations of matmul."""
    return _work(outputs[0], _products(outputs, inputs))


def linear_traffic(outputs: Outputs, inputs: Inputs) -> int:
    """The bytes of input @ weightᵀ + bias."""
    return bytes_of(inputs[2:]) + _traffic(outputs[0], _of_weight(inputs))


def linear_work(outputs: Outputs, inputs: Inputs) -> int:
    """The operations of input @ weightᵀ + bias."""
    return _work(outputs[0], _of_weight(inputs))
