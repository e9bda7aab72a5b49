"""Methods that change the tensor itself, but for those that elementwise.in_place makes."""

# ruff: noqa: A002 (names are PyTorch's)

from __future__ import annotations

from typing import Any

from torchemu.frontends.numpy._tensor import (
    elementwise,
    parametric,
)
from torchemu.frontends.numpy._tensor.core import Tensor, method
from torchemu.frontends.numpy._tensor.pointwise import pointwise_into


@method
def add_(self: Tensor, other: Any, *, alpha: Any = 1) -> Tensor:
    """self += alpha·other."""
    return pointwise_into(self, *elementwise.scaled("add", (self, other), alpha))


@method
def sub_(self: Tensor, other: Any, *, alpha: Any = 1) -> Tensor:
    """self -= alpha·other."""
    return pointwise_into(self, *elementwise.scaled("sub", (self, other), alpha))


@method
def div_(self: Tensor, other: Any, *, rounding_mode: str | None = None) -> Tensor:
    """self /= other; rounded to an integer with rounding_mode "trunc" or "floor"."""
    return pointwise_into(self, elementwise.division(rounding_mode), (self, other))


@method
def clamp_(self: Tensor, min: Any = None, max: Any = None) -> Tensor:
    """clamp, stored in the tensor itself."""
    return pointwise_into(self, *parametric.clamping(self, min, max))


# -- the tensor's memory


@method
def share_memory_(self: Tensor) -> Tensor:
    """Nothing: ranks are in one process, and see each other's memory."""
    return self


@method
def pin_memory(self: Tensor, device: Any = None) -> Tensor:
    """The tensor itself: there is no other memory than the host's."""
    return self


@method
def record_stream(self: Tensor, stream: Any) -> None:
    """Has a stream's work over before the tensor's memory is given to others.

    Here it is not used again while an operation needs it, but races are looked for as if it were.
    """
    piece = self._storage.piece
    if piece is not None and self._storage.world.ordered:
        piece.waited.append(stream.stream_id)
