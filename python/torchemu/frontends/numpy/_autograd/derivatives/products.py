"""Products of vectors and matrices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torchemu.frontends.numpy._autograd.call import Call
from torchemu.frontends.numpy._autograd.derivative import EVERYTHING, Derivative, Joint, Partial
from torchemu.frontends.numpy._autograd.derivatives.elementwise import times
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


def _added(first: Any, second: Any) -> Derivative:
    """Of beta·input + alpha·product, from the formulas for the product's factors, which are operands 1 and 2."""
    return Derivative(
        Partial(lambda c, g: times(c.params[0], g)),
        Partial(lambda c, g: times(c.params[1], first(g, c[2])), 2),
        Partial(lambda c, g: times(c.params[1], second(g, c[1])), 1),
    )


_MATRICES = _added(lambda g, b: g @ b.mT, lambda g, a: a.mT @ g)


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


def _tensordot(call: Call, grad: Tensor) -> list[Any]:
    axes_a, axes_b = call.params[0]
    a, b = call.shape(0), call.shape(1)
    free_a = [i for i in range(len(a)) if i not in axes_a]
    free_b = [i for i in range(len(b)) if i not in axes_b]
    of_b = list(range(len(free_a), len(grad._shape)))
    of_a = list(range(len(free_a)))
    first = second = None
    if call.needs[0]:
        first = linalg.tensordot(grad, call[1], (of_b, free_b))  # free_a, then axes_b in their order
        first = _ordered(first, [*free_a, *_by_partner(axes_b, axes_a)])
    if call.needs[1]:
        second = linalg.tensordot(grad, call[0], (of_a, free_a))  # free_b, then axes_a in their order
        second = _ordered(second, [*free_b, *_by_partner(axes_a, axes_b)])
    return [first, second]


def _by_partner(axes: Sequence[int], partners: Sequence[int]) -> list[int]:
    """The partners, in the order of their axes."""
    return [partner for _, partner in sorted(zip(axes, partners, strict=True))]


def _ordered(t: Tensor, places: Sequence[int]) -> Tensor:
    """With each dimension at its place."""
    return t.permute([places.index(i) for i in range(len(places))])


def _kron(call: Call, grad: Tensor) -> list[Any]:
    """Each dimension of the result counts an index of the first operand, and within it one of the second."""
    a, b = call[0], call[1]
    n = len(grad._shape)
    first, second = ((1,) * (n - len(t._shape)) + t._shape for t in (a, b))
    parts = grad.reshape([size for pair in zip(first, second, strict=True) for size in pair])
    wide_a = a.reshape([size for m in first for size in (m, 1)])
    wide_b = b.reshape([size for m in second for size in (1, m)])
    of_a, of_b = list(range(1, 2 * n, 2)), list(range(0, 2 * n, 2))
    return [
        (parts * wide_b).sum(of_a).reshape(a._shape) if call.needs[0] else None,
        (parts * wide_a).sum(of_b).reshape(b._shape) if call.needs[1] else None,
    ]


def _cross_first(call: Call, grad: Tensor) -> Tensor:
    return linalg.cross(call[1], grad, call.params[0])


def _cross_second(call: Call, grad: Tensor) -> Tensor:
    return linalg.cross(grad, call[0], call.params[0])


DERIVATIVES: dict[Op, Derivative] = {
    linalg.MATMUL: Derivative(Partial(_matmul_first, 1), Partial(_matmul_second, 0)),
    linalg.OUTER: Derivative(
        Partial(lambda c, g: g @ c[1].to(g.dtype), 1), Partial(lambda c, g: g.mT @ c[0].to(g.dtype), 0)
    ),
    linalg.ADDMM: _MATRICES,
    linalg.BADDBMM: _MATRICES,
    linalg.ADDMV: _added(lambda g, v: linalg.outer(g, v), lambda g, m: m.mT @ g),
    linalg.ADDBMM: _added(lambda g, b: g @ b.mT, lambda g, a: a.mT @ g),
    linalg.ADDR: _added(lambda g, b: g @ b, lambda g, a: g.mT @ a),
    linalg.EINSUM: Joint(_einsum, EVERYTHING),
    linalg.TENSORDOT: Joint(_tensordot, EVERYTHING),
    linalg.KRON: Joint(_kron, EVERYTHING),
    linalg.CROSS: Derivative(Partial(_cross_first, 1), Partial(_cross_second, 0)),
}
