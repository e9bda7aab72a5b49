"""Triton-distributed: kernels that reach other ranks' memory, and signal each other.

Where the real package is installed, what it has and this has not comes from there: its library of kernels, above these
modules.
"""

import importlib.machinery

from torchemu.frontends.triton._jit import jit
from torchemu.frontends.triton._placeholders import placeholders
from torchemu.frontends.triton_dist.face import language

__all__ = ["jit", "language"]

_installed = importlib.machinery.PathFinder.find_spec("triton_dist")
if _installed is not None and _installed.submodule_search_locations is not None:
    __path__ = [*__path__, *_installed.submodule_search_locations]

__getattr__ = placeholders("triton_dist", is_package=True)
