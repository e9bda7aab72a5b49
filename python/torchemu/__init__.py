"""A cluster of accelerators in one process.

``import torchemu as torch`` gives programs the names they know from PyTorch, on a simulated AHBM fabric. They are made
in ``torchemu._namespace``, which is loaded when the first of them is used: pytest imports this package in every run of
it, for the sake of ``torchemu.pytest_plugin``, and most of those runs have no use for NumPy and the Go core.
"""

from __future__ import annotations

import importlib
import importlib.util
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torchemu._namespace import *  # noqa: F403


def __getattr__(name: str) -> Any:
    """A submodule, or a name of the namespace at its first use; those that change, such as spec, at every use."""
    if name.startswith("_") and name not in ("__version__", "__all__") and not name.startswith("_foreach_"):
        raise AttributeError(f"torchemu has no {name!r}")
    if importlib.util.find_spec(f"{__name__}.{name}") is not None:
        return importlib.import_module(f"{__name__}.{name}")
    if name == "kernel":  # which PyTorch has not
        return importlib.import_module("torchemu.language").kernel
    namespace = importlib.import_module("torchemu._namespace")
    globals().update(namespace.NAMES)
    return namespace.NAMES[name] if name in namespace.NAMES else getattr(namespace, name)


def __dir__() -> list[str]:
    return sorted({*globals(), *dir(importlib.import_module("torchemu._namespace"))})
