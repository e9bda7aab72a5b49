"""A small PyTorch over NumPy: what ``import torch`` gives where no PyTorch is installed.

The names are made in :mod:`.namespace`, which is loaded when the first of them is used.
"""

from __future__ import annotations

import importlib
import importlib.machinery
from typing import Any

_BESIDE = ("dtypes", "errors", "kernels", "language", "multiprocessing", "pto", "tp", "version")
"""Modules of torchemu that programs reach as attributes of torch."""


def __getattr__(name: str) -> Any:
    """A submodule, or a name of the namespace at its first use; those that change, such as spec, at every use."""
    if name.startswith("_") and name not in ("__version__", "__all__") and not name.startswith("_foreach_"):
        raise AttributeError(f"module 'torch' has no attribute {name!r}")
    if importlib.machinery.PathFinder.find_spec(f"{__name__}.{name}", __path__) is not None:
        return importlib.import_module(f"{__name__}.{name}")
    if name in ("kernel", "language"):
        importlib.import_module(f"{__name__}._buffers")  # for what they make
    if name in _BESIDE:
        return importlib.import_module(f"torchemu.{name}")
    if name == "kernel":  # which PyTorch has not
        return importlib.import_module("torchemu.language").kernel
    namespace = importlib.import_module(f"{__name__}.namespace")
    globals().update(namespace.NAMES)
    return namespace.NAMES[name] if name in namespace.NAMES else getattr(namespace, name)


def __dir__() -> list[str]:
    return sorted({*globals(), *dir(importlib.import_module(f"{__name__}.namespace"))})
