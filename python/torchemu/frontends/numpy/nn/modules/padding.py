"""Padding; what a mode does is said at torch.nn.functional.pad."""

from __future__ import annotations

from typing import Any

from torchemu.frontends.numpy._tensor.core import Tensor
from torchemu.frontends.numpy.nn import functional as F  # noqa: N812 (its usual name)
from torchemu.frontends.numpy.nn.modules.module import Module

__all__ = [
    f"{kind}Pad{ndim}d" for kind in ("Circular", "Constant", "Reflection", "Replication", "Zero") for ndim in (1, 2, 3)
]


class _Pad(Module):
    """More elements at the edges.

    Args:
        padding: how many: one number, or before and behind the last dimension, the one before it, ….
    """

    _ndim: int
    _mode: str

    def __init__(self, padding: Any) -> None:
        super().__init__()
        self.padding = (padding,) * (2 * self._ndim) if isinstance(padding, int) else tuple(padding)

    def forward(self, input: Tensor) -> Tensor:  # noqa: A002
        """(N, C, …) or (C, …) of another size."""
        return F.pad(input, self.padding, self._mode)

    def extra_repr(self) -> str:
        """How many."""
        return f"{self.padding}"


class _ConstantPad(_Pad):
    """More elements at the edges.

    Args:
        padding: how many: one number, or before and behind the last dimension, the one before it, ….
        value: of the elements.
    """

    def __init__(self, padding: Any, value: float) -> None:
        super().__init__(padding)
        self.value = value

    def forward(self, input: Tensor) -> Tensor:  # noqa: A002
        """(N, C, …) or (C, …) of another size."""
        return F.pad(input, self.padding, "constant", self.value)

    def extra_repr(self) -> str:
        """How many, and their value."""
        return f"padding={self.padding}, value={self.value}"


class _ZeroPad(_ConstantPad):
    """More elements at the edges: zeros.

    Args:
        padding: how many: one number, or before and behind the last dimension, the one before it, ….
    """

    def __init__(self, padding: Any) -> None:
        super().__init__(padding, 0.0)

    def extra_repr(self) -> str:
        """How many."""
        return f"{self.padding}"


def _of(kind: type, name: str, ndim: int, mode: str = "constant") -> Any:
    body = {"_ndim": ndim, "_mode": mode, "__doc__": kind.__doc__, "__module__": __name__}
    return type(f"{name}Pad{ndim}d", (kind,), body)


CircularPad1d, CircularPad2d, CircularPad3d = (_of(_Pad, "Circular", n, "circular") for n in (1, 2, 3))
ReflectionPad1d, ReflectionPad2d, ReflectionPad3d = (_of(_Pad, "Reflection", n, "reflect") for n in (1, 2, 3))
ReplicationPad1d, ReplicationPad2d, ReplicationPad3d = (_of(_Pad, "Replication", n, "replicate") for n in (1, 2, 3))
ConstantPad1d, ConstantPad2d, ConstantPad3d = (_of(_ConstantPad, "Constant", n) for n in (1, 2, 3))
ZeroPad1d, ZeroPad2d, ZeroPad3d = (_of(_ZeroPad, "Zero", n) for n in (1, 2, 3))
