"""What a DeviceMesh is given, checked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from torchemu.frontends.numpy._tensor import Tensor

Override = tuple[str | None, Any]
"""The backend and its options of the process groups along an axis; None for those of the default group."""

DEFAULT: Override = (None, None)


def names_of(names: Sequence[str] | None, shape: tuple[int, ...]) -> tuple[str, ...] | None:
    if names is None:
        return None
    if len(set(names)) != len(names):
        raise RuntimeError(
            f"Each mesh_dim_name must be unique. Found repeated mesh_dim_name in mesh_dim_names {tuple(names)}"
        )
    if len(names) != len(shape):
        raise RuntimeError(
            "mesh_shape and mesh_dim_names should have same length! "
            f"Found len(mesh_dim_names): {len(names)} and len(mesh_shape):{len(shape)}."
        )
    return tuple(names)


def overrides_of(given: Mapping[int | str, Any] | None, ndim: int, names: Sequence[str] | None) -> tuple[Override, ...]:
    """The override of each axis."""
    left = dict(given or {})
    found = []
    for i in range(ndim):
        keys = [key for key in (i, *(names or ())[i : i + 1]) if key in left]
        if len(keys) > 1:
            raise RuntimeError(f"Found redundant dim index {i} and name {keys[1]} in backend_override")
        found.append(override_of(left.pop(keys[0])) if keys else DEFAULT)
    if left:
        raise RuntimeError(
            f"Found invalid keys in backend_override: got {list(left)}, expected integers in range [0, {ndim}) or one "
            f"of {tuple(names or ())}"
        )
    return tuple(found)


def override_of(value: Any) -> Override:
    if isinstance(value, tuple):
        return value
    return (value, None) if isinstance(value, str) else (None, value)


def array_of(mesh: Any) -> np.ndarray:
    """Ranks as an array of integers, each once."""
    ranks = np.asarray(mesh.tolist() if isinstance(mesh, Tensor) else mesh)
    if ranks.size and ranks.dtype.kind not in "iu":
        raise TypeError(f"a DeviceMesh is made of ranks, which are integers, not {ranks.dtype}")
    if np.unique(ranks).size < ranks.size:
        raise ValueError(f"ranks list must not contain duplicate entries, got {ranks.ravel().tolist()}")
    return ranks
