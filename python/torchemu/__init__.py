"""A cluster of accelerators in one process.

``import torchemu as torch`` gives programs the names they know from PyTorch, on a simulated AHBM fabric: those of
:mod:`torchemu.frontends.numpy`, which is loaded when the first of them is used. pytest imports this package in every
run of it, for the sake of ``torchemu.pytest_plugin``, and most of those runs have no use for NumPy and the Go core.
"""

from __future__ import annotations

import importlib
import os
import sys
from typing import Any

from torchemu.aliases import AliasFinder
from torchemu.marks import mark_by

_NAMES = "torchemu.frontends.numpy"
_ELSEWHERE = {
    "kernels": "torchemu.language.kernels",
    "pto": "torchemu.frontends.pto",
}
"""Modules that programs import from torchemu and that lie deeper. What lies nowhere else is of the front end."""

_HERE = frozenset(
    file.name.removesuffix(".py")
    for file in os.scandir(os.path.dirname(__file__))
    if (file.name.endswith(".py") and file.name != "__init__.py")
    or os.path.isfile(os.path.join(file.path, "__init__.py"))
)
"""The modules that lie in this folder. pkgutil would tell, and take longer to load than all of this."""


def _meant(name: str) -> str | None:
    """The module that a name below torchemu stands for; None where it is that of a file here."""
    package, _, rest = name.partition(".")
    if package != __name__ or not rest:
        return None
    first, dot, deeper = rest.partition(".")
    if first in _HERE:
        return None
    return _ELSEWHERE.get(first, f"{_NAMES}.{first}") + dot + deeper


def _mark(*args: Any, **options: Any) -> Any:
    return importlib.import_module("torchemu.pytest_plugin").distributed(*args, **options)


mark_by(_mark)


sys.meta_path.insert(0, AliasFinder(_meant))


def __getattr__(name: str) -> Any:
    """A module here that is not loaded yet, or a name of the front end: kept from its first use on where it is kept
    there, since some change, such as spec."""
    if name.startswith("_") and name not in ("__version__", "__all__") and not name.startswith("_foreach_"):
        raise AttributeError(f"torchemu has no {name!r}")
    if name in _HERE or name in _ELSEWHERE:
        return importlib.import_module(f"{__name__}.{name}")
    front_end = importlib.import_module(_NAMES)
    value = getattr(front_end, name)
    if name in vars(front_end):
        globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *dir(importlib.import_module(_NAMES))})
