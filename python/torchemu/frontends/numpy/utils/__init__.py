"""torch.utils: what many programs need. Its modules are loaded when they are used."""

from __future__ import annotations

import importlib
import importlib.util
from types import ModuleType


def __getattr__(name: str) -> ModuleType:
    """A module, such as torch.utils.checkpoint."""
    if name.startswith("__") or importlib.util.find_spec(f"{__name__}.{name}") is None:
        raise AttributeError(f"module 'torch.utils' has no attribute {name!r}")
    return importlib.import_module(f"{__name__}.{name}")
