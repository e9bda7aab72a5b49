"""Helpers of the tests of complex numbers."""

from __future__ import annotations

import numpy as np
from conftest import NUMPY

COMPLEX = ["complex64", "complex128"]
PARTS = {"complex64": "float32", "complex128": "float64"}
"""The dtypes of their parts."""

SEED = 11


def noise(kind: str, *shape: int, seed: int = SEED) -> np.ndarray:
    """Random numbers whose parts differ in magnitude."""
    rng = np.random.default_rng(seed)
    parts = rng.standard_normal((*shape, 2)) * 10.0 ** rng.integers(-2, 2, (*shape, 2))
    return parts.view(np.complex128)[..., 0].astype(NUMPY[kind])
