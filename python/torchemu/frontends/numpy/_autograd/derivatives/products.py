"""Products of vectors and matrices."""

from __future__ import annotations

from typing import Any

from torchemu.frontends.numpy._autograd.call import Call
from torchemu.frontends.numpy._autograd.derivative import EVERYTHING, Derivative, Joint, Partial
from torchemu.frontends.numpy._tensor import linalg
from torchemu.frontends.numpy._tensor.core import Tensor
from torchemu.frontends.numpy._tensor.dispatch import Op


def _matmul_first(call: Call, grad: Tensor) -> Any:
    """grad @ secondᵀ. Vectors take part as matrices of one row or column."""
    b = call[1]
    if len(b._shape) == 1:
        return grad.unsqueeze(-1) * b
    if len(call.shape(0)) == 1:
        return (grad.unsqueeze(-2) @ b.mT).squeeze(-2)
    return grad @ b.mT


def _matmul_second(call: Call, grad: Tensor) -> Any:
    """firstᵀ @ grad."""
    a = call[0]
    if len(a._shape) == 1:
        return grad.unsqueeze(-2) * a.unsqueeze(-1) if len(call.shape(1)) > 1 else grad * a
    if len(call.shape(1)) == 1:
        return (a.mT @ grad.unsqueeze(-1)).squeeze(-1)
    return a.mT @ grad


# -- sums of products along named indices


def _einsum(call: Call, grad: Tensor) -> list[Any]:
    """For each operand the sum of products of the gradient with the other operands."""
    *terms, result = _indices(call)
    last = len(terms)
    found: list[Any] = []
    for at, term in enumerate(terms):
        others = [i for i in range(last) if i != at]
        present = [i for i in term if i in result or any(i in terms[other] for other in others)]
        if not call.needs[at]:
            found.append(None)
            continue
        equation = ",".join([result, *[terms[i] for i in others]]) + "->" + "".join(present)
        part = linalg.einsum(equation, grad, *[call[i] for i in others])
        shape = [n if i in present else 1 for i, n in zip(term, call.shape(at), strict=True)]
        found.append(part.reshape(shape).expand(call.shape(at)))
    return [*found, None]


def _indices(call: Call) -> list[str]:
    """The indices of each operand and of the result.

    Raises:
        NotImplementedError: they are more than names of dimensions.
    """
    equation = call[len(call.operands) - 1].replace(" ", "")
    left, arrow, right = equation.partition("->")
    terms = left.split(",")
    if not arrow:
        right = "".join(sorted(i for i in set(left) - {","} if left.count(i) == 1))
    if "." in equation or any(len(set(term)) < len(term) for term in terms):
        raise NotImplementedError(
            f"derivative for einsum is not implemented for {equation!r}: neither '...' nor an index twice in a term"
        )
    sizes = [dict(zip(term, call.shape(at), strict=True)) for at, term in enumerate(terms)]
    if any(of[i] != other[i] for of in sizes for other in sizes for i in of if i in other):
        raise NotImplementedError(f"derivative for einsum is not implemented for {equation!r} where sizes broadcast")
    return [*terms, right]


DERIVATIVES: dict[Op, Derivative] = {
    linalg.MATMUL: Derivative(Partial(_matmul_first, 1), Partial(_matmul_second, 0)),
    linalg.OUTER: Derivative(
        Partial(lambda c, g: g @ c[1].to(g.dtype), 1), Partial(lambda c, g: g.mT @ c[0].to(g.dtype), 0)
    ),
    linalg.EINSUM: Joint(_einsum, EVERYTHING),
}
