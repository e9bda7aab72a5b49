"""The bytes that products of matrices move: a PE makes them tile by tile, and reads operands again for each tile.

How large tiles are, and what follows from that, is the Go core's model (network.MatMulCost).
"""

from __future__ import annotations

import math

from torchemu.bridge.binding import go
from torchemu.frontends.numpy._tensor.core import Tensor
from torchemu.frontends.numpy._tensor.dispatch import Inputs, Outputs, bytes_of


def tiled(result: Tensor, m: int, n: int, k: int) -> int:
    """The traffic of [m, k]·[k, n] on the device of the result, in its dtype."""
    return go.MatMulBytes(result._storage.world.handle, result.dtype.name, m, n, k)


def product_traffic(outputs: Outputs, inputs: Inputs) -> int:
    """That of matmul: a stack of matrices, or of vectors, times one of matrices, or one matrix, or a vector."""
    a, b = inputs[:2]
    k = a._shape[-1]
    n = b._shape[-1] if len(b._shape) > 1 else 1
    if len(b._shape) <= 2:
        return tiled(outputs[0], math.prod(a._shape[:-1]), n, k)
    m = a._shape[-2] if len(a._shape) > 1 else 1
    products = math.prod(outputs[0]._shape) // max(m * n, 1)
    return products * tiled(outputs[0], m, n, k)


def added_traffic(outputs: Outputs, inputs: Inputs) -> int:
    """That of addmm and its kin: what is added is read once besides."""
    return bytes_of(inputs[:1]) + product_traffic(outputs, inputs[1:])


def summed_traffic(outputs: Outputs, inputs: Inputs) -> int:
    """That of addbmm: each product of the stack is added to the same matrix."""
    stack, m, k = inputs[1]._shape
    return bytes_of(inputs[:1]) + stack * tiled(outputs[0], m, inputs[2]._shape[-1], k)


def linear_traffic(outputs: Outputs, inputs: Inputs) -> int:
    """That of input @ weightᵀ + bias."""
    x, weight = inputs[:2]
    n = math.prod(weight._shape[:-1])
    return bytes_of(inputs[2:]) + tiled(outputs[0], math.prod(x._shape[:-1]), n, x._shape[-1])
