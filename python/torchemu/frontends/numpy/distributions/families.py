"""The distributions that there are."""

from __future__ import annotations

import math
from typing import Any

from torchemu.frontends.numpy._limits import finfo
from torchemu.frontends.numpy._shape import Size
from torchemu.frontends.numpy._tensor.core import Tensor
from torchemu.frontends.numpy._tensor.creation import arange, ones, zeros
from torchemu.frontends.numpy._tensor.parametric import where
from torchemu.frontends.numpy._tensor.random_numbers import bernoulli, multinomial, normal, rand
from torchemu.frontends.numpy.distributions.distribution import (
    BOOLEAN,
    NONNEGATIVE,
    POSITIVE,
    REAL,
    SIMPLEX,
    UNIT,
    VECTOR,
    Constraint,
    Distribution,
    together,
)
from torchemu.frontends.numpy.nn.functional import binary_cross_entropy_with_logits

__all__ = ["Bernoulli", "Categorical", "Exponential", "Independent", "Laplace", "Normal", "Uniform"]


class Normal(Distribution):
    """The normal distribution.

    Args:
        loc: the mean.
        scale: the standard deviation.
        validate_args: as of distributions.
    """

    arg_constraints = {"loc": REAL, "scale": POSITIVE}  # noqa: RUF012
    support = REAL
    has_rsample = True

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        self.loc, self.scale = together(loc, scale)
        super().__init__(self.loc.shape, validate_args=validate_args)

    mean = mode = property(lambda self: self.loc)
    stddev = property(lambda self: self.scale)
    variance = property(lambda self: self.scale**2)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        """Draws through which gradients go."""
        shape = self._extended_shape(sample_shape)
        where_ = {"dtype": self.loc.dtype, "device": self.loc.device}
        return self.loc + normal(zeros(shape, **where_), ones(shape, **where_)) * self.scale

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the density."""
        self._validate_sample(value)
        return -((value - self.loc) ** 2) / (2 * self.variance) - self.scale.log() - math.log(math.sqrt(2 * math.pi))

    def cdf(self, value: Tensor) -> Tensor:
        """The probability of a smaller value."""
        self._validate_sample(value)
        return 0.5 * (1 + ((value - self.loc) * self.scale.reciprocal() / math.sqrt(2)).erf())

    def icdf(self, value: Tensor) -> Tensor:
        """Below what a share of the values is."""
        return self.loc + self.scale * (2 * value - 1).erfinv() * math.sqrt(2)

    def entropy(self) -> Tensor:
        """½ + ½·log 2π + log σ."""
        return 0.5 + 0.5 * math.log(2 * math.pi) + self.scale.log()


class Laplace(Distribution):
    """Laplace's distribution: the density falls exponentially on both sides.

    Args:
        loc: the mean.
        scale: how far the density falls to 1/e.
        validate_args: as of distributions.
    """

    arg_constraints = {"loc": REAL, "scale": POSITIVE}  # noqa: RUF012
    support = REAL
    has_rsample = True

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        self.loc, self.scale = together(loc, scale)
        super().__init__(self.loc.shape, validate_args=validate_args)

    mean = mode = property(lambda self: self.loc)
    stddev = property(lambda self: 2**0.5 * self.scale)
    variance = property(lambda self: 2 * self.scale**2)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        """Draws through which gradients go."""
        u = self.loc.new_empty(self._extended_shape(sample_shape)).uniform_(finfo(self.loc.dtype).eps - 1, 1)
        return self.loc - self.scale * u.sign() * (-u.abs()).log1p()

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the density."""
        self._validate_sample(value)
        return -(2 * self.scale).log() - (value - self.loc).abs() / self.scale

    def cdf(self, value: Tensor) -> Tensor:
        """The probability of a smaller value."""
        self._validate_sample(value)
        return 0.5 - 0.5 * (value - self.loc).sign() * (-(value - self.loc).abs() / self.scale).expm1()

    def icdf(self, value: Tensor) -> Tensor:
        """Below what a share of the values is."""
        term = value - 0.5
        return self.loc - self.scale * term.sign() * (-2 * term.abs()).log1p()

    def entropy(self) -> Tensor:
        """1 + log 2b."""
        return 1 + (2 * self.scale).log()


class Uniform(Distribution):
    """All numbers from low to high alike.

    Args:
        low, high: the bounds.
        validate_args: as of distributions.
    """

    arg_constraints = {"low": REAL, "high": REAL}  # noqa: RUF012
    has_rsample = True

    def __init__(self, low: Any, high: Any, validate_args: bool | None = None) -> None:
        self.low, self.high = together(low, high)
        super().__init__(self.low.shape, validate_args=validate_args)
        if self._validate_args and not (self.low < self.high).all().item():
            number = not self.low.dim()
            low, high = (t.item() if number else t for t in (self.low, self.high))
            raise ValueError(
                f"Expected parameter low (Tensor of shape {tuple(self.low.shape)}) of distribution {self!r} to satisfy "
                f"the constraint LessThan(upper_bound={high}), but found invalid values:\n{low}"
            )

    mean = property(lambda self: (self.high + self.low) / 2)
    variance = property(lambda self: (self.high - self.low) ** 2 / 12)

    @property
    def support(self) -> Constraint:
        """From low to high."""
        text = f"Interval(lower_bound={self.low}, upper_bound={self.high})"
        return Constraint(text, lambda x: (x >= self.low) & (x <= self.high))

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        """Draws through which gradients go."""
        shares = rand(self._extended_shape(sample_shape), dtype=self.low.dtype, device=self.low.device)
        return self.low + shares * (self.high - self.low)

    def log_prob(self, value: Tensor) -> Tensor:
        """-log(high - low)."""
        self._validate_sample(value)
        inside = ((self.low <= value) & (self.high > value)).to(self.low.dtype)
        return inside.log() - (self.high - self.low).log()

    def cdf(self, value: Tensor) -> Tensor:
        """The probability of a smaller value."""
        self._validate_sample(value)
        return ((value - self.low) / (self.high - self.low)).clamp(0, 1)

    def icdf(self, value: Tensor) -> Tensor:
        """Below what a share of the values is."""
        return value * (self.high - self.low) + self.low

    def entropy(self) -> Tensor:
        """log(high - low)."""
        return (self.high - self.low).log()


class Exponential(Distribution):
    """The time until something happens that happens so often.

    Args:
        rate: how often, on average.
        validate_args: as of distributions.
    """

    arg_constraints = {"rate": POSITIVE}  # noqa: RUF012
    support = NONNEGATIVE
    has_rsample = True

    def __init__(self, rate: Any, validate_args: bool | None = None) -> None:
        (self.rate,) = together(rate)
        super().__init__(self.rate.shape, validate_args=validate_args)

    mean = stddev = property(lambda self: self.rate.reciprocal())
    mode = property(lambda self: self.rate * 0)
    variance = property(lambda self: self.rate.pow(-2))

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        """Draws through which gradients go."""
        return self.rate.new_empty(self._extended_shape(sample_shape)).exponential_() / self.rate

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the density."""
        self._validate_sample(value)
        return self.rate.log() - self.rate * value

    def cdf(self, value: Tensor) -> Tensor:
        """The probability of a smaller value."""
        self._validate_sample(value)
        return 1 - (-self.rate * value).exp()

    def icdf(self, value: Tensor) -> Tensor:
        """Below what a share of the values is."""
        return -(-value).log1p() / self.rate

    def entropy(self) -> Tensor:
        """1 - log rate."""
        return 1 - self.rate.log()


def _check_one(probs: Any, logits: Any) -> None:
    if (probs is None) == (logits is None):
        raise ValueError("Either `probs` or `logits` must be specified, but not both.")


class Bernoulli(Distribution):
    """1 with a probability, and else 0.

    Args:
        probs: the probability,
        logits: or log(p/(1-p)).
        validate_args: as of distributions.
    """

    arg_constraints = {"probs": UNIT, "logits": REAL}  # noqa: RUF012
    support = BOOLEAN
    has_enumerate_support = True

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: bool | None = None) -> None:
        _check_one(probs, logits)
        (given,) = together(logits if probs is None else probs)
        vars(self)["logits" if probs is None else "probs"] = given
        super().__init__(given.shape, validate_args=validate_args)

    def __getattr__(self, name: str) -> Any:
        if name == "probs" and "logits" in vars(self):
            return vars(self)["logits"].sigmoid()
        if name == "logits" and "probs" in vars(self):
            edge = finfo(vars(self)["probs"].dtype).eps
            return vars(self)["probs"].clamp(edge, 1 - edge).logit()
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    mean = property(lambda self: self.probs)
    variance = property(lambda self: self.probs * (1 - self.probs))
    mode = property(lambda self: where(self.probs == 0.5, math.nan, (self.probs > 0.5).to(self.probs.dtype)))

    def sample(self, sample_shape: Any = ()) -> Tensor:
        """Draws."""
        return bernoulli(self.probs.detach().expand(self._extended_shape(sample_shape)))

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the probability."""
        self._validate_sample(value)
        logits, value = together(self.logits, value)
        return -binary_cross_entropy_with_logits(logits, value, reduction="none")

    def entropy(self) -> Tensor:
        """-p·log p - (1-p)·log(1-p)."""
        return binary_cross_entropy_with_logits(self.logits, self.probs, reduction="none")

    def enumerate_support(self, expand: bool = True) -> Tensor:
        """0 and 1."""
        values = arange(2, dtype=self.probs.dtype, device=self.probs.device).view(-1, *[1] * len(self._batch_shape))
        return values.expand(-1, *self._batch_shape) if expand else values


class Categorical(Distribution):
    """One of several numbers, from 0 on.

    Args:
        probs: what each counts, along the last dimension: they are divided by their sum;
        logits: or logarithms of that.
        validate_args: as of distributions.
    """

    arg_constraints = {"probs": SIMPLEX, "logits": VECTOR}  # noqa: RUF012
    has_enumerate_support = True

    def __init__(
        self, probs: Tensor | None = None, logits: Tensor | None = None, validate_args: bool | None = None
    ) -> None:
        _check_one(probs, logits)
        given = logits if probs is None else probs
        assert given is not None
        if given.dim() < 1:
            raise ValueError(f"`{'logits' if probs is None else 'probs'}` parameter must be at least one-dimensional.")
        if probs is None:
            self.logits = given - given.logsumexp(-1, keepdim=True)
        else:
            self.probs = given / given.sum(-1, keepdim=True)
        self._events = given.shape[-1]
        super().__init__(given.shape[:-1], validate_args=validate_args)

    def __getattr__(self, name: str) -> Any:
        if name == "probs" and "logits" in vars(self):
            return vars(self)["logits"].softmax(-1)
        if name == "logits" and "probs" in vars(self):
            edge = finfo(vars(self)["probs"].dtype).eps
            return vars(self)["probs"].clamp(edge, 1 - edge).log()
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    @property
    def support(self) -> Constraint:
        """The numbers that there are."""
        last = self._events - 1
        text = f"IntegerInterval(lower_bound=0, upper_bound={last})"
        return Constraint(text, lambda x: (x % 1 == 0) & (x >= 0) & (x <= last))

    @property
    def param_shape(self) -> Size:
        """The shape of the probabilities."""
        return Size((*self._batch_shape, self._events))

    mean = variance = property(lambda self: self.probs.new_full(self._batch_shape, math.nan))
    mode = property(lambda self: self.probs.argmax(-1))

    def sample(self, sample_shape: Any = ()) -> Tensor:
        """Draws, of int64."""
        shape = self._extended_shape(sample_shape)
        rows = self.probs.detach().reshape(-1, self._events)
        drawn = multinomial(rows, math.prod(sample_shape), True)
        return drawn.T.reshape(shape)

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the probability."""
        self._validate_sample(value)
        index = value.long().unsqueeze(-1)
        batch = together(index[..., 0].float(), self.logits[..., 0])[0].shape
        return self.logits.expand(*batch, -1).gather(-1, index.expand(*batch, 1)).squeeze(-1)

    def entropy(self) -> Tensor:
        """-Σ p·log p."""
        return -(self.logits.clamp(min=finfo(self.logits.dtype).min) * self.probs).sum(-1)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        """The numbers that there are."""
        values = arange(self._events, device=self.probs.device).view(-1, *[1] * len(self._batch_shape))
        return values.expand(-1, *self._batch_shape) if expand else values


class Independent(Distribution):
    """Several independent draws, taken for one.

    Args:
        base_distribution: of which.
        reinterpreted_batch_ndims: how many of its last dimensions are those of one draw.
        validate_args: as of distributions.

    Raises:
        ValueError: it has not so many.
    """

    def __init__(
        self, base_distribution: Distribution, reinterpreted_batch_ndims: int, validate_args: bool | None = None
    ) -> None:
        batch, n = base_distribution.batch_shape, reinterpreted_batch_ndims
        if n > len(batch):
            raise ValueError(
                f"Expected reinterpreted_batch_ndims <= len(base_distribution.batch_shape), actual {n} vs {len(batch)}"
            )
        self.base_dist, self.reinterpreted_batch_ndims = base_distribution, n
        cut = len(batch) - n
        super().__init__(batch[:cut], (*batch[cut:], *base_distribution.event_shape), validate_args)

    has_rsample = property(lambda self: self.base_dist.has_rsample)
    mean = property(lambda self: self.base_dist.mean)
    mode = property(lambda self: self.base_dist.mode)
    variance = property(lambda self: self.base_dist.variance)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        """Draws."""
        return self.base_dist.sample(sample_shape)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        """Draws through which gradients go."""
        return self.base_dist.rsample(sample_shape)

    def _summed(self, t: Tensor) -> Tensor:
        return t.flatten(t.dim() - self.reinterpreted_batch_ndims).sum(-1) if self.reinterpreted_batch_ndims else t

    def log_prob(self, value: Tensor) -> Tensor:
        """The sum of those of all."""
        return self._summed(self.base_dist.log_prob(value))

    def entropy(self) -> Tensor:
        """The sum of those of all."""
        return self._summed(self.base_dist.entropy())

    def expand(self, batch_shape: Any) -> Distribution:
        """The same with parameters expanded to a shape."""
        last = self._event_shape[: self.reinterpreted_batch_ndims]
        return Independent(self.base_dist.expand((*batch_shape, *last)), self.reinterpreted_batch_ndims)

    def __repr__(self) -> str:
        return f"Independent({self.base_dist}, {self.reinterpreted_batch_ndims})"
