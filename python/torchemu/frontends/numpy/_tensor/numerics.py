"""Functions of numbers that NumPy lacks, on arrays of float32 or float64."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

Array = np.ndarray


def sign(x: Array) -> Array:
    """-1, 0 or 1; 0 for NaN."""
    return np.where(np.isnan(x), 0, np.sign(x)).astype(x.dtype)


def rsqrt(x: Array) -> Array:
    """1/√x."""
    return 1 / np.sqrt(x)


def sigmoid(x: Array) -> Array:
    """1/(1+e⁻ˣ)."""
    return 1 / (1 + np.exp(-x))


def rounded(x: Array, decimals: int) -> Array:
    """To so many decimals, halves to even; before the point for negative ones."""
    scale = x.dtype.type(10.0 ** abs(decimals))
    return np.rint(x * scale) / scale if decimals > 0 else np.rint(x / scale) * scale


def silu(x: Array) -> Array:
    """x·sigmoid(x)."""
    return x / (1 + np.exp(-x))


def gelu(x: Array, approximate: str) -> Array:
    """x·Φ(x), where Φ is the distribution function of the normal distribution, or its approximation by tanh."""
    if approximate == "tanh":
        inner = math.sqrt(2 / math.pi) * (x + 0.044715 * x * x * x)
        return 0.5 * x * (1 + np.tanh(inner))
    return 0.5 * x * (1 + erf(x * math.sqrt(0.5)))


_SERIES = 0.5  # up to here erf is its power series, beyond 1 - erfc
_ONE = 4  # from here on erf is 1, to float32
_PLACES = 2048  # a unit, in the table for float32: between them it is wrong by a ten-thousandth of the last digit
_CHUNK = 1 << 13  # elements that are calculated together: they and what is on the way stay in the cache


def _in_chunks(function: Callable[[Array], Array]) -> Callable[[Array], Array]:
    """The same function, piece by piece, of absolute values as float64."""

    @functools.wraps(function)
    def on_chunks(x: Array) -> Array:
        flat = x.reshape(-1)
        result = np.empty_like(flat)
        for start in range(0, flat.size, _CHUNK):
            result[start : start + _CHUNK] = function(flat[start : start + _CHUNK])
        return result.reshape(x.shape)

    return on_chunks


@_in_chunks
def erf(x: Array) -> Array:
    """The error function, to the last digits of the dtype."""
    if x.dtype == np.float32:
        return _erf_of_floats(x)
    a = np.abs(x)
    near = _erf_series(np.minimum(a, _SERIES), x.dtype)
    return np.copysign(np.where(a < _SERIES, near, 1 - _erfc_of_positive(a, x.dtype)), x)


def _erf_of_floats(x: Array) -> Array:
    """erf of float32, as x·g(|x|) with Taylor's parabola of g about the next place in a table."""
    near = np.clip(x, -_ONE, _ONE)
    a = np.abs(near)
    at = (a * _PLACES + 0.5).astype(np.intp)
    off = (a - at.astype(np.float32) / _PLACES).astype(np.float64)
    value, slope, bend = (np.take(column, at, mode="clip") for column in _erf_table())  # clip: NaN is no place
    bend *= off
    bend += slope
    bend *= off
    bend += value
    bend *= near
    return bend


@functools.cache
def _erf_table() -> tuple[Array, Array, Array]:
    """g(a) = erf(a)/a, g' and g″/2 at the multiples of 1/_PLACES up to _ONE."""
    a = np.arange(1, _ONE * _PLACES + 1) / _PLACES
    limit = 2 / math.sqrt(math.pi)  # of g(a), and the derivative of erf, for a = 0
    density, value = limit * np.exp(-a * a), erf(a) / a
    slope = (density - value) / a
    bend = -density - slope / a
    return np.append(limit, value), np.append(0, slope), np.append(-limit / 3, bend)


def _erf_series(a: Array, kind: np.dtype) -> Array:
    """2/√π · Σ (-1)ⁿ a²ⁿ⁺¹ / (n!(2n+1)), by Horner's rule."""
    square, total = a * a, np.zeros_like(a)
    for n in range(7 if kind == np.float32 else 13, -1, -1):
        total *= square
        total += (-1) ** n / (math.factorial(n) * (2 * n + 1))
    return 2 / math.sqrt(math.pi) * a * total


def _erfc_of_positive(a: Array, kind: np.dtype) -> Array:
    """erfc(a) = t·exp(P(t) - a²) with t = 2/(2+a)."""
    t = 2 / (2 + a)
    return t * np.exp(_chebyshev_sum(2 * t - 1, _erfc_coefficients(kind == np.float32)) - a * a)


def _chebyshev_sum(u: Array, coefficients: list[float]) -> Array:
    """Σ cₙTₙ(u), by Clenshaw's rule."""
    twice, later, latest = 2 * u, np.zeros_like(u), np.zeros_like(u)
    for c in coefficients[:0:-1]:
        later *= -1
        later += twice * latest
        later += c
        later, latest = latest, later
    return coefficients[0] + u * latest - later


@functools.cache
def _erfc_coefficients(short: bool) -> list[float]:
    """Of P in Chebyshev's polynomials of 2t-1; short: those that float32 can show."""

    def p(u: Any) -> Any:
        a = 4 / (u + 1) - 2
        return np.array([_log_scaled_erfc(x) for x in a]) - np.log((u + 1) / 2)

    return np.polynomial.chebyshev.chebinterpolate(p, 40).tolist()[: 16 if short else 41]


def _log_scaled_erfc(a: float) -> float:
    """log(erfc(a)·exp(a²)): where erfc is too small for a float64, by its asymptotic series."""
    if a < 7:
        return math.log(math.erfc(a)) + a * a
    term, total = 1.0, 1.0
    for n in range(1, 25):
        term *= -(2 * n - 1) / (2 * a * a)
        total += term
    return math.log(total / (a * math.sqrt(math.pi)))


# -- of two


def floor_divide(x: Array, y: Array) -> Array:
    """⌊x/y⌋ of integers."""
    _check_divisor(y)
    return np.floor_divide(x, y)


def truncated_divide(x: Array, y: Array) -> Array:
    """x/y of integers, towards zero."""
    _check_divisor(y)
    floor = np.floor_divide(x, y)
    return floor + ((floor < 0) & (floor * y != x))


def remainder(x: Array, y: Array) -> Array:
    """x - ⌊x/y⌋·y of integers, with y's sign."""
    _check_divisor(y)
    return np.remainder(x, y)


def _check_divisor(y: Array) -> None:
    if not np.all(y):
        raise RuntimeError("ZeroDivisionError")


def integer_power(x: Array, y: Array | int) -> Array:
    """xʸ of integers, which wraps. A number may not be negative as exponent; the power with a negative element is the
    integer part of what it is."""
    if isinstance(y, int):
        if y < 0:
            raise RuntimeError("Integers to negative integer powers are not allowed.")
        return np.power(x, y)
    powers = np.power(x, np.maximum(y, 0))
    parity = np.where(np.asarray(y) % 2 == 0, 1, -1)
    of_negative = np.where(np.equal(x, 1), 1, np.where(np.equal(x, -1), parity, 0))
    return np.where(y < 0, of_negative.astype(powers.dtype), powers)


def power(x: Array, y: Array | float) -> Array:
    """xʸ of floats."""
    return np.multiply(x, x) if isinstance(y, int | float) and y == 2 else np.power(x, y)
