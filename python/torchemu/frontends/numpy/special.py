"""torch.special: functions of single elements that are named after people or letters, and others."""

# ruff: noqa: A002, A004 (names are PyTorch's)

from __future__ import annotations

import math
from typing import Any

from torchemu.frontends.numpy._autograd.derivatives.elementwise import I1, TRIGAMMA
from torchemu.frontends.numpy._tensor.core import Tensor
from torchemu.frontends.numpy._tensor.elementwise import (
    digamma,
    erf,
    erfc,
    erfinv,
    exp2,
    expm1,
    i0,
    lgamma,
    log1p,
    sigmoid,
    sinc,
    xlogy,
)
from torchemu.frontends.numpy._tensor.parametric import logit, round, where
from torchemu.frontends.numpy._tensor.pointwise import pointwise
from torchemu.frontends.numpy._tensor.reductions import log_softmax, logsumexp, softmax
from torchemu.unsupported import unsupported

__all__ = [
    "digamma",
    "entr",
    "erf",
    "erfc",
    "erfinv",
    "exp2",
    "expit",
    "expm1",
    "gammaln",
    "i0",
    "i0e",
    "i1",
    "i1e",
    "log1p",
    "log_softmax",
    "logit",
    "logsumexp",
    "multigammaln",
    "ndtr",
    "ndtri",
    "polygamma",
    "psi",
    "round",
    "sinc",
    "softmax",
    "xlog1py",
    "xlogy",
]

expit, gammaln, psi = sigmoid, lgamma, digamma


def entr(input: Tensor) -> Tensor:
    """-x·log x; 0 for 0, and -inf below."""
    return where(input < 0, -math.inf, -xlogy(input, input))


def xlog1py(input: Any, other: Any) -> Tensor:
    """x·log(1 + y), and 0 where x is."""
    logs = other.log1p() if isinstance(other, Tensor) else math.log1p(other)
    zero = (input == 0) if isinstance(input, Tensor) else logs * 0 + float(input) == 0
    return where(zero & ~logs.isnan(), 0.0, input * logs) if isinstance(logs, Tensor) else input * logs


def ndtr(input: Tensor) -> Tensor:
    """The distribution function of the normal distribution."""
    return erfc(input * -math.sqrt(0.5)) / 2


def ndtri(input: Tensor) -> Tensor:
    """The inverse of ndtr."""
    return erfinv(2 * input - 1) * math.sqrt(2)


def i0e(input: Tensor) -> Tensor:
    """e^-|x|·i0(x)."""
    return (-input.abs()).exp() * i0(input)


def i1(input: Tensor) -> Tensor:
    """The modified Bessel function of the first kind of order 1."""
    return pointwise(I1, (input,))


def i1e(input: Tensor) -> Tensor:
    """e^-|x|·i1(x)."""
    return (-input.abs()).exp() * i1(input)


def polygamma(n: int, input: Tensor) -> Tensor:
    """The n-th derivative of digamma, up to the first.

    Raises:
        RuntimeError: n is negative. NotImplementedError: a higher one.
    """
    if n < 0:
        raise RuntimeError("polygamma(n, x) does not support negative n.")
    if n > 1:
        raise unsupported(f"torch.special.polygamma({n}, …)", "n = 0 and n = 1 are")
    return pointwise(TRIGAMMA, (input,)) if n else digamma(input)


def multigammaln(input: Tensor, p: int) -> Tensor:
    """The logarithm of the multivariate gamma function of dimension p."""
    total: Any = p * (p - 1) / 4 * math.log(math.pi)
    for j in range(p):
        total = total + lgamma(input - j / 2)
    return total
