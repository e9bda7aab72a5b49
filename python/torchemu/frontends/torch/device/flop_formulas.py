"""PyTorch's formulas for the operations of matrix units.

Their module loads Triton, to know its kernels by their class, and Triton loads a compiler, which takes a tenth of the
time in which a run begins. No kernel of it reaches the formulas: programs get another Triton.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from types import ModuleType

_PACKAGES, _KERNELS = ("triton", "triton.runtime"), "triton.runtime.jit"


@contextlib.contextmanager
def _no_compiler() -> Iterator[None]:
    """Has ``triton.runtime.jit`` be a module with a class of which there are no kernels, unless Triton is loaded."""
    if "triton" in sys.modules:
        yield
        return
    kernels = ModuleType(_KERNELS)
    kernels.JITFunction = type("JITFunction", (), {})  # type: ignore[attr-defined]
    sys.modules.update({name: ModuleType(name) for name in _PACKAGES}, **{_KERNELS: kernels})
    try:
        yield
    finally:
        for name in (*_PACKAGES, _KERNELS):
            del sys.modules[name]


with _no_compiler():
    from torch.utils.flop_counter import flop_registry

__all__ = ["flop_registry"]
