"""The library in which NumPy multiplies matrices: a run's process has one thread of it, as torchrun's workers have."""

from __future__ import annotations

import ctypes
import os
from pathlib import Path

_SWITCHES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
_SETTERS = tuple(f"{prefix}openblas_set_num_threads{suffix}" for prefix in ("scipy_", "") for suffix in ("64_", ""))
"""Names that OpenBLAS' function has, by how it was built."""


def limit() -> None:
    """Makes NumPy's OpenBLAS use one thread, unless the environment says how many: on a busy machine two threads of it
    wait for each other for much longer than they multiply."""
    if any(name in os.environ for name in _SWITCHES):
        return
    for path in _loaded():
        library = ctypes.CDLL(path)
        setter = next((found for name in _SETTERS if (found := getattr(library, name, None)) is not None), None)
        if setter is not None:
            setter(1)


def _loaded() -> list[str]:
    """The files of OpenBLAS that the process has loaded."""
    maps = Path("/proc/self/maps")
    lines = maps.read_text().splitlines() if maps.exists() else []
    return sorted({line.split()[-1] for line in lines if "openblas" in line})
