"""What the tests of complex numbers share."""

from __future__ import annotations

from typing import Any

import numpy as np
from conftest import NUMPY

COMPLEX = ["complex64", "complex128"]
PARTS = {"complex64": "float32", "complex128": "float64"}
"""The dtypes of their parts."""

EPS = {"complex64": 2.0**-22, "complex128": 2.0**-51}
SEED = 11


def noise(kind: str, *shape: int, seed: int = SEED) -> np.ndarray:
    """Random numbers whose parts differ in magnitude."""
    rng = np.random.default_rng(seed)
    parts = rng.standard_normal((*shape, 2)) * 10.0 ** rng.integers(-2, 2, (*shape, 2))
    return parts.view(np.complex128)[..., 0].astype(NUMPY[kind])


def near(got: Any, want: Any, kind: str, scale: float = 8) -> None:
    """Compares element by element, up to a few units in the last place of the larger part."""
    got, want = np.asarray(got), np.asarray(want)
    assert got.shape == want.shape
    for index in np.ndindex(want.shape):
        error = abs(complex(got[index]) - complex(want[index]))
        bound = scale * EPS[kind] * max(abs(complex(want[index])), 2.0**-30)
        assert error <= bound, f"seed {SEED}, element {index}: {got[index]}, want {want[index]}"
