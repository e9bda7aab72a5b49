"""torch.distributions.Distribution: what distributions have in common."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple

from torchemu.frontends.numpy._grad_mode import no_grad
from torchemu.frontends.numpy._shape import Size
from torchemu.frontends.numpy._tensor.core import Tensor
from torchemu.frontends.numpy._tensor.from_data import as_tensor
from torchemu.frontends.numpy._tensor.views import broadcast_tensors

__all__ = ["Distribution"]


class Constraint(NamedTuple):
    """What numbers may be.

    Attributes:
        text: what messages call it.
        holds: of a tensor, element by element, or of the last dimension.
    """

    text: str
    holds: Callable[[Tensor], Tensor]


REAL = Constraint("Real()", lambda x: x == x)
POSITIVE = Constraint("GreaterThan(lower_bound=0.0)", lambda x: x > 0)
NONNEGATIVE = Constraint("GreaterThanEq(lower_bound=0.0)", lambda x: x >= 0)
UNIT = Constraint("Interval(lower_bound=0.0, upper_bound=1.0)", lambda x: (x >= 0) & (x <= 1))
BOOLEAN = Constraint("Boolean()", lambda x: (x == 0) | (x == 1))
SIMPLEX = Constraint("Simplex()", lambda x: (x >= 0).all(-1) & ((x.sum(-1) - 1).abs() < 1e-6))
VECTOR = Constraint("IndependentConstraint(Real(), 1)", lambda x: (x == x).all(-1))


def together(*values: Any) -> tuple[Tensor, ...]:
    """Numbers and tensors as tensors of one shape."""
    first = next((v for v in values if isinstance(v, Tensor)), None)
    tensors = [
        v if isinstance(v, Tensor) else as_tensor(float(v)) if first is None else first.new_tensor(float(v))
        for v in values
    ]
    return broadcast_tensors(*tensors)


class Distribution:
    """A distribution of random numbers, or of as many independent ones as its parameters have elements.

    Args:
        batch_shape: the shape of the parameters.
        event_shape: the shape of one draw.
        validate_args: whether parameters and values are checked; None: they are.

    Attributes:
        has_rsample: whether gradients go through draws, by rsample.
        arg_constraints: what the parameters may be.

    Raises:
        ValueError: a parameter cannot be so.
    """

    has_rsample = False
    has_enumerate_support = False
    arg_constraints: ClassVar[dict[str, Constraint]] = {}

    def __init__(self, batch_shape: Any = (), event_shape: Any = (), validate_args: bool | None = None) -> None:
        self._batch_shape, self._event_shape = Size(batch_shape), Size(event_shape)
        self._validate_args = validate_args is not False
        for name, constraint in self.arg_constraints.items() if self._validate_args else ():
            if name in vars(self):
                value = vars(self)[name]
                if not constraint.holds(value).all().item():
                    shown = value.item() if not value.dim() else value
                    raise ValueError(
                        f"Expected parameter {name} ({type(value).__name__} of shape {tuple(value.shape)}) of "
                        f"distribution {self!r} to satisfy the constraint {constraint.text}, but found invalid "
                        f"values:\n{shown}"
                    )

    @property
    def batch_shape(self) -> Size:
        """The shape of the parameters."""
        return self._batch_shape

    @property
    def event_shape(self) -> Size:
        """The shape of one draw."""
        return self._event_shape

    @property
    def support(self) -> Constraint:
        """What values may be."""
        raise NotImplementedError

    @property
    def mean(self) -> Tensor:
        """The mean."""
        raise NotImplementedError

    @property
    def mode(self) -> Tensor:
        """The most probable value."""
        raise NotImplementedError(f"{type(self)} does not implement mode")

    @property
    def variance(self) -> Tensor:
        """The variance."""
        raise NotImplementedError

    @property
    def stddev(self) -> Tensor:
        """The standard deviation."""
        return self.variance.sqrt()

    def expand(self, batch_shape: Any) -> Distribution:
        """The same with parameters expanded to a shape."""
        made = object.__new__(type(self))
        made.__dict__.update(vars(self))
        for name in self.arg_constraints:
            if name in vars(self):
                t = vars(self)[name]
                vars(made)[name] = t.expand(tuple(batch_shape) + tuple(t.shape[len(self._batch_shape) :]))
        made._batch_shape = Size(batch_shape)
        return made

    def sample(self, sample_shape: Any = ()) -> Tensor:
        """Draws, (*sample_shape, *batch_shape, *event_shape), through which no gradients go."""
        with no_grad():
            return self.rsample(sample_shape)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        """Draws through which gradients go.

        Raises:
            NotImplementedError: they do not.
        """
        raise NotImplementedError

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the density, or of the probability, at a value."""
        raise NotImplementedError

    def cdf(self, value: Tensor) -> Tensor:
        """The probability of a smaller value."""
        raise NotImplementedError

    def icdf(self, value: Tensor) -> Tensor:
        """Below what a share of the values is."""
        raise NotImplementedError

    def entropy(self) -> Tensor:
        """The entropy, in nats."""
        raise NotImplementedError

    def perplexity(self) -> Tensor:
        """e to the power of the entropy."""
        return self.entropy().exp()

    def enumerate_support(self, expand: bool = True) -> Tensor:
        """All values there are."""
        raise NotImplementedError

    def _extended_shape(self, sample_shape: Any = ()) -> Size:
        return Size((*sample_shape, *self._batch_shape, *self._event_shape))

    def _validate_sample(self, value: Tensor) -> None:
        """Raises:
        ValueError: no tensor, of a shape that does not fit, or outside of the support.
        """
        if not self._validate_args:
            return
        if not isinstance(value, Tensor):
            raise ValueError("The value argument to log_prob must be a Tensor")
        wanted = (*self._batch_shape, *self._event_shape)
        for i, j in zip(reversed(value.shape), reversed(wanted), strict=False):
            if 1 not in (i, j) and i != j:
                raise ValueError(
                    f"Value is not broadcastable with batch_shape+event_shape: {value.shape} vs {Size(wanted)}."
                )
        if not self.support.holds(value).all().item():
            raise ValueError(
                f"Expected value argument ({type(value).__name__} of shape {tuple(value.shape)}) to be within the "
                f"support ({self.support.text}) of the distribution {self!r}, but found invalid values:\n{value}"
            )

    def __repr__(self) -> str:
        given = [(name, vars(self)[name]) for name in self.arg_constraints if name in vars(self)]
        texts = [f"{name}: {t if t.numel() == 1 else t.size()}" for name, t in given]
        return f"{type(self).__name__}({', '.join(texts)})"
