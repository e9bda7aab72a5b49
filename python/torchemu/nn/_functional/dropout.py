"""dropout. Its random numbers are those of the rank's generator."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from torchemu import dtypes
from torchemu._autograd.derivative import LATER, Derivative, Partial
from torchemu._tensor.conversion import converted
from torchemu._tensor.core import Tensor
from torchemu._tensor.creation import ones
from torchemu._tensor.dispatch import Op, _op_several
from torchemu._tensor.generator import Generator, default_generator
from torchemu._tensor.reductions import wide
from torchemu.nn._functional.arguments import check_tensor

Array = np.ndarray


def _dropout(x: Array, p: float, source: Generator) -> tuple[Array, Array]:
    """The result, and which elements are kept. 1/(1-p) has the precision of the elements' dtype."""
    kept = source.uniform(x.size, 53).reshape(x.shape) < 1 - p
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
    result = _op_several(DROPOUT, (input,), p, default_generator(), kinds=(input.dtype, dtypes.bool_))[0]
    return input.copy_(result) if inplace else result


def _channels(ndim: int) -> Callable[..., Tensor]:
    name = f"dropout{ndim}d"

    def call(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:  # noqa: A002
        if not 0 <= p <= 1:
            raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")
        check_tensor(name, "input", 1, input)
        if not training or p == 0 or not input.numel():
            return input
        shape = input._shape[: input.dim() - ndim]
        kept = dropout(ones(shape, dtype=input.dtype, device=input.device), p).view(*shape, *[1] * ndim)
        return input.mul_(kept) if inplace else input * kept

    call.__name__ = call.__qualname__ = name
    call.__doc__ = f"dropout of whole channels, (N, C, …) or (C, …), with {ndim} dimensions each."
    return call


dropout1d, dropout2d, dropout3d = map(_channels, (1, 2, 3))
