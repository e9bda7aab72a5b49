"""The names that ``import torchemu as torch`` gives; see torchemu/__init__.py."""

from __future__ import annotations

from typing import Any

from torchemu import _runtime, ahbm, distributed, dtypes, errors, multiprocessing
from torchemu._binding import go as _go
from torchemu._placement import DPPolicy
from torchemu._runtime import World
from torchemu._runtime import opened as open_world
from torchemu._tensor import Size, Tensor, arange, empty, from_numpy, full, ones, tensor, zeros, zeros_like
from torchemu.dtypes import dtype

__version__: str = _go.Version()

__all__ = [
    "DPPolicy",
    "Size",
    "Tensor",
    "World",
    "ahbm",
    "arange",
    "distributed",
    "dtype",
    "dtypes",
    "empty",
    "errors",
    "from_numpy",
    "full",
    "multiprocessing",
    "ones",
    "open_world",
    "tensor",
    "zeros",
    "zeros_like",
]

_DTYPES = {name: d for d in dtypes.ALL for name in d.names}

NAMES: dict[str, Any] = {**_DTYPES, **{name: globals()[name] for name in ("__version__", "__all__", *__all__)}}
"""All that never changes; ``import *`` takes __all__ of it only, for some dtypes have the names of builtins."""


def __getattr__(name: str) -> Any:
    """torch.spec, the topology of the current World."""
    if name == "spec":
        return _runtime.current_world().spec
    raise AttributeError(f"torchemu has no {name!r}")


def __dir__() -> list[str]:
    return sorted({*NAMES, "spec"})
