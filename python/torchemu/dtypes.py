"""Element types: ``torch.float16`` and its kin. The Go core's table is the only one; this one is made from it."""

from __future__ import annotations

import functools
import json

import numpy as np

from torchemu._binding import go


class dtype:  # noqa: N801 (PyTorch's name)
    """An element type. There is one object for each, so ``is`` compares."""

    def __init__(self, name: str, names: list[str], itemsize: int, is_floating_point: bool) -> None:
        self.name, self.names, self.itemsize, self.is_floating_point = name, names, itemsize, is_floating_point

    def __repr__(self) -> str:
        return f"torch.{self.name}"

    def __reduce__(self) -> tuple[object, ...]:
        return (parse, (self.name,))

    @functools.cached_property
    def numpy(self) -> np.dtype:
        """The NumPy dtype; bfloat16 and the float8 types come from ml_dtypes."""
        try:
            return np.dtype(self.name)
        except TypeError:
            import ml_dtypes

            return np.dtype(getattr(ml_dtypes, self.name))


ALL = tuple(dtype(d["name"], d["names"], d["size"], d["float"]) for d in json.loads(go.DTypes()))
"""All element types, in the Go core's order."""

_BY_NAME = {name: d for d in ALL for name in d.names}


def parse(name: str | dtype | None) -> dtype:
    """The dtype of a name ("f16", "float16", "torch.float16", …); None is float32."""
    if isinstance(name, dtype):
        return name
    if name is None:
        return _BY_NAME["float32"]
    if not isinstance(name, str):
        raise TypeError(f"dtype must be a torch.dtype or its name, not {name!r} ({type(name).__name__})")
    found = _BY_NAME.get(name.removeprefix("torch."))
    if found is None:
        raise ValueError(f"unknown dtype {name!r}: choose one of {', '.join(d.name for d in ALL)}")
    return found


def of_numpy(array: np.ndarray) -> dtype:
    """The dtype of a NumPy array's elements.

    Raises:
        TypeError: torch has no such dtype.
        ValueError: the byte order is not this machine's.
    """
    found = _BY_NAME.get(array.dtype.name)
    if found is None or found.name != array.dtype.name:  # NumPy's float8_e4m3 is another type than torch's
        supported = ", ".join(d.name for d in ALL)
        raise TypeError(f"can't convert np.ndarray of type {array.dtype}: the supported types are {supported}")
    if not array.dtype.isnative:
        raise ValueError(
            f"can't convert np.ndarray of type {array.dtype}: its byte order is not this machine's; "
            f"use array.astype({found.name!r})"
        )
    return found
