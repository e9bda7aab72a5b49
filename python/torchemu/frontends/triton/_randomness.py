"""Random numbers by counters: Philox 4×32 of 10 rounds, with the constants of its paper (Salmon et al., 2011)."""

from __future__ import annotations

from typing import Any

import numpy as np

from torchemu.frontends.triton import _types as t
from torchemu.frontends.triton._values import made, plain, tensor, value_of

_KEYS = 0x9E3779B9, 0xBB67AE85
_ROUNDS = 0xD2511F53, 0xCD9E8D57
_SCALE = 4.6566127342e-10  # the largest float32 below 2⁻³¹


def _product(a: np.ndarray, b: int) -> tuple[np.ndarray, np.ndarray]:
    wide = a.astype(np.uint64) * np.uint64(b)
    return (wide >> np.uint64(32)).astype(np.uint32), wide.astype(np.uint32)


def philox(seed: Any, c0: Any, c1: Any, c2: Any, c3: Any, n_rounds: int = 10) -> tuple[tensor, ...]:
    """Four blocks of random bits, of a seed and four counters, as uint32."""
    number = int(plain(seed)) % (1 << 64)
    k0, k1 = number & 0xFFFFFFFF, number >> 32
    c = [np.asarray(value_of(x).data).astype(np.uint32) for x in (c0, c1, c2, c3)]
    c = [np.ascontiguousarray(x) for x in np.broadcast_arrays(*c)]
    for _ in range(int(plain(n_rounds))):
        (hi0, lo0), (hi1, lo1) = _product(c[0], _ROUNDS[0]), _product(c[2], _ROUNDS[1])
        c = [hi1 ^ c[1] ^ np.uint32(k0), lo1, hi0 ^ c[3] ^ np.uint32(k1), lo0]
        k0, k1 = (k0 + _KEYS[0]) & 0xFFFFFFFF, (k1 + _KEYS[1]) & 0xFFFFFFFF
    return tuple(made(x, t.uint32) for x in c)


def randint4x(seed: Any, offset: Any, n_rounds: int = 10) -> tuple[tensor, ...]:
    """Four blocks of random bits, of a seed and a counter, as int32."""
    return tuple(x.to(t.int32, bitcast=True) for x in philox(seed, offset, 0, 0, 0, n_rounds))


def randint(seed: Any, offset: Any, n_rounds: int = 10) -> tensor:
    """A block of random bits, as int32."""
    return randint4x(seed, offset, n_rounds)[0]


def uint_to_uniform_float(x: Any) -> tensor:
    """Random bits as float32 from 0 up to 1."""
    v = value_of(x)
    bits = np.asarray(v.data).astype(np.int64).astype(np.int32)
    positive = np.where(bits < 0, -bits - 1, bits).astype(np.float32)
    return made(positive * np.float32(_SCALE), t.float32)


def rand(seed: Any, offset: Any, n_rounds: int = 10) -> tensor:
    """Random float32 from 0 up to 1."""
    return uint_to_uniform_float(randint(seed, offset, n_rounds))


def rand4x(seed: Any, offset: Any, n_rounds: int = 10) -> tuple[tensor, ...]:
    """Four blocks of random float32 from 0 up to 1."""
    return tuple(uint_to_uniform_float(x) for x in randint4x(seed, offset, n_rounds))


def _normal(a: tensor, b: tensor) -> tuple[tensor, tensor]:
    """Two blocks of the standard normal distribution, of two from 0 up to 1, by the method of Box and Muller."""
    length = np.sqrt(-2 * np.log(np.maximum(np.float32(1e-7), a.data)))
    angle = np.float32(6.283185307179586) * b.data
    both = (length * np.cos(angle)).astype(np.float32), (length * np.sin(angle)).astype(np.float32)
    return made(both[0], t.float32), made(both[1], t.float32)


def randn(seed: Any, offset: Any, n_rounds: int = 10) -> tensor:
    """Random float32 of the standard normal distribution."""
    a, b, _, _ = rand4x(seed, offset, n_rounds)
    return _normal(a, b)[0]


def randn4x(seed: Any, offset: Any, n_rounds: int = 10) -> tuple[tensor, ...]:
    """Four blocks of random float32 of the standard normal distribution."""
    a, b, c, d = rand4x(seed, offset, n_rounds)
    return *_normal(a, b), *_normal(c, d)
