"""Products of vectors and matrices."""

from __future__ import annotations

from typing import Any

from torchemu._autograd.call import Call
from torchemu._autograd.derivative import Derivative, Partial
from torchemu._tensor import linalg
from torchemu._tensor.core import Tensor
from torchemu._tensor.dispatch import Op


def matmul_first(call: Call, grad: Tensor) -> Any:
    """Of the first operand of matmul: grad @ secondᵀ. Vectors take part as matrices of one row or column."""
    b = call[1]
    if len(b._shape) == 1:
        return grad.unsqueeze(-1) * b
    if len(call.shape(0)) == 1:
        return (grad.unsqueeze(-2) @ b.mT).squeeze(-2)
    return grad @ b.mT


def matmul_second(call: Call, grad: Tensor) -> Any:
    """Of the second operand: firstᵀ @ grad."""
    a = call[0]
    if len(a._shape) == 1:
        return grad.unsqueeze(-2) * a.unsqueeze(-1) if len(call.shape(1)) > 1 else grad * a
    if len(call.shape(1)) == 1:
        return (a.mT @ grad.unsqueeze(-1)).squeeze(-1)
    return a.mT @ grad


DERIVATIVES: dict[Op, Derivative] = {
    linalg.MATMUL: Derivative(Partial(matmul_first, 1), Partial(matmul_second, 0)),
}
