"""torch.distributions.kl_divergence: how far one distribution is from another."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from torchemu.frontends.numpy._tensor.core import Tensor
from torchemu.frontends.numpy._tensor.parametric import where
from torchemu.frontends.numpy.distributions.distribution import Distribution
from torchemu.frontends.numpy.distributions.families import (
    Bernoulli,
    Categorical,
    Exponential,
    Independent,
    Laplace,
    Normal,
    Uniform,
)

__all__ = ["kl_divergence"]


def _normal(p: Any, q: Any) -> Tensor:
    ratio = (p.scale / q.scale) ** 2
    distance = ((p.loc - q.loc) / q.scale) ** 2
    return 0.5 * (ratio + distance - 1 - ratio.log())


def _laplace(p: Any, q: Any) -> Tensor:
    distance, ratio = (p.loc - q.loc).abs(), p.scale / q.scale
    shape = (-distance / p.scale).exp()
    return -ratio.log() + distance / q.scale + ratio * shape - 1


def _uniform(p: Any, q: Any) -> Tensor:
    found = ((q.high - q.low) / (p.high - p.low)).log()
    return where((q.low > p.low) | (q.high < p.high), math.inf, found)


def _exponential(p: Any, q: Any) -> Tensor:
    ratio = q.rate / p.rate
    return ratio - 1 - ratio.log()


def _bernoulli(p: Any, q: Any) -> Tensor:
    def part(a: Tensor, b: Tensor) -> Tensor:
        found = where(a == 0, 0.0, a * (a / b).log())
        return where((b == 0) & (a != 0), math.inf, found)

    return part(p.probs, q.probs) + part(1 - p.probs, 1 - q.probs)


def _categorical(p: Any, q: Any) -> Tensor:
    found = p.probs * (p.logits - q.logits)
    found = where(q.probs == 0, math.inf, found)
    return where(p.probs == 0, 0.0, found).sum(-1)


def _independent(p: Any, q: Any) -> Tensor:
    if p.reinterpreted_batch_ndims != q.reinterpreted_batch_ndims:
        raise NotImplementedError
    summed: Tensor = p._summed(kl_divergence(p.base_dist, q.base_dist))
    return summed


_FORMULAS: dict[type[Distribution], Callable[[Any, Any], Tensor]] = {
    Bernoulli: _bernoulli,
    Categorical: _categorical,
    Exponential: _exponential,
    Independent: _independent,
    Laplace: _laplace,
    Normal: _normal,
    Uniform: _uniform,
}


def kl_divergence(p: Distribution, q: Distribution) -> Tensor:
    """Kullback and Leibler's divergence of q from p, of one family.

    Raises:
        NotImplementedError: of two families, or of another one.
    """
    family = next((kind for kind in type(p).__mro__ if kind in _FORMULAS and isinstance(q, kind)), None)
    if family is None:
        raise NotImplementedError(
            f"No KL(p || q) is implemented for p type {type(p).__name__} and q type {type(q).__name__}"
        )
    return _FORMULAS[family](p, q)
