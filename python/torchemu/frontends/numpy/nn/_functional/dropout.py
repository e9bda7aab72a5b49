"""dropout. Its random numbers are those of the input's device."""

from __future__ import annotations

import numpy as np

from torchemu import dtypes
from torchemu.frontends.numpy._autograd.derivative import LATER, Derivative, Partial
from torchemu.frontends.numpy._tensor.conversion import converted
from torchemu.frontends.numpy._tensor.core import Tensor
from torchemu.frontends.numpy._tensor.dispatch import Op, _op_several
from torchemu.frontends.numpy._tensor.generator import Generator, generator_on
from torchemu.frontends.numpy._tensor.random_numbers import in_memory_order
from torchemu.frontends.numpy._tensor.reductions import wide
from torchemu.frontends.numpy.nn._functional.arguments import check_tensor

Array = np.ndarray


def _dropout(x: Array, p: float, source: Generator) -> tuple[Array, Array]:
    """The result, and which elements are kept. 1/(1-p) has the precision of the elements' dtype."""
    kept = np.empty_like(x, np.bool_)
    into = in_memory_order(kept)
    into[...] = (source.uniform(x.size, 53) < 1 - p).reshape(into.shape)
    scale = converted(np.asarray(1 / (1 - p) if p < 1 else 0.0), x.dtype)
    return wide(x) * kept * wide(scale), kept


DROPOUT = Op(
    "native_dropout",
    _dropout,
    derivative=Derivative(
        Partial(
            lambda call, grad, _: grad * call.results[1] * (1 / (1 - call.params[0]) if call.params[0] < 1 else 0),
            LATER,
        )
    ),
)


def dropout(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:  # noqa: A002
    """In training, makes each element zero with probability p, and divides the others by 1-p.

    Args:
        input: of floats, of any shape.
        p: the probability.
        training: otherwise the result is the input.
        inplace: store the result in the input.

    Raises:
        ValueError: p is no probability. RuntimeError: of integers. TypeError: not a tensor.
    """
    if not 0 <= p <= 1:
        raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")
    check_tensor("dropout", "input", 1, input)
    if not training or p == 0 or not input.numel():
        return input
    if not input.dtype.is_floating_point:
        raise RuntimeError(f"result type Float can't be cast to the desired output type {input.dtype.title}")
    result = _op_several(DROPOUT, (input,), p, generator_on(input.device), kinds=(input.dtype, dtypes.bool_))[0]
    return input.copy_(result) if inplace else result
