"""Tensors of random numbers."""

# ruff: noqa: A002 (names are PyTorch's)

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from torchemu import dtypes
from torchemu.frontends.numpy import _settings
from torchemu.frontends.numpy._shape import dims
from torchemu.frontends.numpy._tensor.conversion import check_real, converted
from torchemu.frontends.numpy._tensor.core import Tensor, method
from torchemu.frontends.numpy._tensor.creation import allocated, as_options, finished, options_of
from torchemu.frontends.numpy._tensor.dispatch import Op, _op_in_place, no_flops, not_implemented
from torchemu.frontends.numpy._tensor.generator import Generator, generator_on

__all__ = [
    "rand",
    "rand_like",
    "randint",
    "randn",
    "randn_like",
    "randperm",
]


Array = np.ndarray

_DIGITS = {"float64": 53, "float32": 24, "float16": 24, "bfloat16": 24}
"""Binary digits of uniform numbers: those of shorter floats are rounded float32."""

_WHOLE = {"float64": 53, "float32": 24, "float16": 11, "bfloat16": 8}
"""Binary digits of the integers that random_() draws for floats: as many as they have exactly."""


_MANY = 1 << 28
"""From so many possible integers on each takes 64 bits, so that all are equally likely."""


def _generator(given: Generator | None, t: Tensor) -> Generator:
    if given is None:
        return generator_on(t.device)
    if not isinstance(given, Generator):
        raise TypeError(f"generator must be a torch.Generator, not {type(given).__name__}")
    return given


def _fill(x: Array, numbers: Callable[[], Array]) -> None:
    """Numbers are drawn in the order in which the elements lie in memory."""
    inwards = in_memory_order(x)
    inwards[...] = converted(np.asarray(numbers()).reshape(inwards.shape), x.dtype)


def in_memory_order(x: Array) -> Array:
    """Returns a view whose elements come one after another as they lie in memory."""
    return x.transpose(sorted(range(x.ndim), key=lambda axis: -x.strides[axis]))


def _filling(name: str) -> Op:
    return Op(name, _fill, no_flops)


UNIFORM, NORMAL, RANDOM = map(_filling, ("uniform_", "normal_", "random_"))
BERNOULLI = Op("bernoulli_", lambda x, write: write(x), no_flops)


def _check_float(name: str, t: Tensor) -> int:
    digits = _DIGITS.get(t.dtype.name)
    if digits is None:
        raise not_implemented(f"{name}_cpu", t.dtype)
    return digits


# -- into existing tensors


@method
def uniform_(
    self: Tensor, from_: float = 0, to: float = 1, *, generator: Generator | None = None, **more: Any
) -> Tensor:
    """Fills the tensor with numbers uniform in [from, to).

    Raises:
        NotImplementedError: the dtype is not a float type. RuntimeError: from is above to.
    """
    low, high = more.pop("from", from_), to
    if more:
        raise TypeError(f"uniform_() got an unexpected keyword argument '{next(iter(more))}'")
    digits, source, n = _check_float("uniform", self), _generator(generator, self), self.numel()
    if low > high:
        raise RuntimeError(f"uniform_ expects to return a [from, to) range, but found from={low} > to={high}")

    def numbers() -> Array:
        return source.uniform(n, digits, low, high)

    _op_in_place(UNIFORM, self, (), numbers)
    return self


@method
def normal_(self: Tensor, mean: float = 0, std: float = 1, *, generator: Generator | None = None) -> Tensor:
    """Fills the tensor with normal numbers.

    Raises:
        NotImplementedError: the dtype is not a float type. RuntimeError: std is negative.
    """
    _check_float("normal", self)
    source, n = _generator(generator, self), self.numel()
    blocks = n >= 16 and self.is_contiguous()
    if std < 0:
        raise RuntimeError(f"normal expects std >= 0.0, but found std {std}")

    def numbers() -> Array:
        drawn = source.normal(n, self.dtype.name) if blocks else source.single_normals(n)
        return drawn * drawn.dtype.type(std) + drawn.dtype.type(mean)

    _op_in_place(NORMAL, self, (), numbers)
    return self


@method
def random_(
    self: Tensor, from_: int | None = None, to: int | None = None, *, generator: Generator | None = None
) -> Tensor:
    """Fills the tensor with integers of [from, to): from 0 where one number is given; without, all that the dtype has
    exactly.

    Raises:
        RuntimeError: the interval is empty.
    """
    check_real(self.dtype)
    low, high = (0, from_) if to is None else (from_ or 0, to)
    many = _MANY
    if high is None:
        high, many = _above_all(self.dtype), 1 << 32
    source, n = _generator(generator, self), self.numel()
    if low >= high:
        raise RuntimeError(f"random_ expects 'from' to be less than 'to', but got from={low} >= to={high}")
    _op_in_place(RANDOM, self, (), lambda: _integers(source, n, low, high, many))
    return self


def _above_all(kind: dtypes.dtype) -> int:
    """The end of the integers that random_() draws for a dtype."""
    if kind.is_floating_point:
        return (1 << _WHOLE.get(kind.name, 0)) + 1
    return 2 if kind is dtypes.bool_ else 1 << 8 * kind.itemsize - kind.is_signed


def _integers(source: Generator, n: int, low: int, high: int, many: int) -> Array:
    words = source.double_words(n) if high - low >= many else source.words(n)
    return (words % np.uint64(high - low)).astype(np.int64) + low


@method
def bernoulli_(self: Tensor, p: Any = 0.5, *, generator: Generator | None = None) -> Tensor:
    """Fills the tensor with ones, with probability p (a number, or a tensor of one for each), and zeros.

    Raises:
        RuntimeError: p is no probability.
    """
    check_real(self.dtype)
    source, n = _generator(generator, self), self.numel()
    chance = p._read() if isinstance(p, Tensor) else p
    if not (np.all(np.asarray(chance) >= 0) and np.all(np.asarray(chance) <= 1)):
        raise RuntimeError(f"bernoulli_ expects p to be in [0, 1], but got p={p}")

    def write(x: Array) -> None:
        drawn, inwards = np.empty_like(x, np.float64), source.uniform(n, 53)
        into = in_memory_order(drawn)
        into[...] = inwards.reshape(into.shape)
        x[...] = converted(drawn < converted(np.asarray(chance), np.dtype(np.float64)), x.dtype)

    _op_in_place(BERNOULLI, self, (), write)
    return self


# -- new tensors


def _drawn(
    fill: Callable[..., Tensor], shape: tuple[int, ...], options: dict[str, Any], kind: dtypes.dtype, *about: Any
) -> Tensor:
    """A new tensor of this shape and, unless the options say otherwise, dtype, that fill has filled."""
    generator = options.pop("generator", None)
    dtype, where, rest = options_of(fill.__name__.removesuffix("_"), options)
    t = allocated(shape, dtype or kind, where)
    return finished(fill(t, *about, generator=generator), rest)


def _size(size: tuple[Any, ...], options: dict[str, Any]) -> tuple[int, ...]:
    return dims((options.pop("size"),) if "size" in options else size)


def rand(*size: Any, **options: Any) -> Tensor:
    """Numbers uniform in [0, 1). The options are those of zeros, and generator."""
    return _drawn(uniform_, _size(size, options), options, _settings.current().dtype)


def randn(*size: Any, **options: Any) -> Tensor:
    """Normal numbers. The options are those of zeros, and generator."""
    return _drawn(normal_, _size(size, options), options, _settings.current().dtype)


def randint(*bounds_and_size: Any, low: int = 0, high: int | None = None, size: Any = None, **options: Any) -> Tensor:
    """randint([low,] high, size): integers of [low, high). The options are those of zeros, and generator."""
    given = list(bounds_and_size)
    if high is not None:
        given.insert(1, high)
    if size is not None:
        given.append(size)
    if len(given) not in (2, 3) or not isinstance(given[-1], Sequence):
        raise TypeError(f"randint() takes [low,] high and a size, not {', '.join(map(repr, given))}")
    *bounds, shape = given if len(given) == 3 else (low, *given)
    return _drawn(random_, dims((shape,)), options, dtypes.int64, *[int(b) for b in bounds])


def rand_like(input: Tensor, **options: Any) -> Tensor:
    """rand() of the tensor's shape, dtype and device."""
    return rand(input._shape, **as_options(input, options))


def randn_like(input: Tensor, **options: Any) -> Tensor:
    """randn() of the tensor's shape, dtype and device."""
    return randn(input._shape, **as_options(input, options))


def _permutation(source: Generator, n: int) -> Array:
    """Fisher and Yates's shuffle."""
    order = list(range(n))
    for i, word in enumerate(source.words(max(n - 1, 0)).tolist()):
        j = i + word % (n - i)
        order[i], order[j] = order[j], order[i]
    return np.array(order, np.int64)


def _permute(t: Tensor, *, generator: Generator | None = None) -> Tensor:
    check_real(t.dtype)
    source, n = _generator(generator, t), t.numel()
    _op_in_place(RANDOM, t, (), lambda: _permutation(source, n))
    return t


def randperm(n: int, **options: Any) -> Tensor:
    """The integers 0 to n-1 in random order. The options are those of zeros, and generator."""
    if n < 0:
        raise RuntimeError(f"n must be non-negative, not {n}")
    return _drawn(_permute, (n,), options, dtypes.int64)
