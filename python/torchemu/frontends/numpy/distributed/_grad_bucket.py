"""GradBucket: what a communication hook of DistributedDataParallel is given."""

from __future__ import annotations

from torchemu.frontends.numpy._tensor.core import Tensor


class GradBucket:
    """Gradients that are reduced together, not yet averaged.

    Args:
        index: the number of the bucket in the order of the reductions.
        buffer: all gradients, one after the other.
        gradients: the parts of the buffer, each in its parameter's shape.
        parameters: the parameters.
        last: whether it is the last bucket of the pass.
    """

    def __init__(
        self, index: int, buffer: Tensor, gradients: list[Tensor], parameters: list[Tensor], last: bool
    ) -> None:
        self._index, self._buffer, self._last = index, buffer, last
        self._gradients, self._parameters = gradients, parameters

    def index(self) -> int:
        """The number of the bucket in the order of the reductions."""
        return self._index

    def buffer(self) -> Tensor:
        """All gradients as one vector."""
        return self._buffer

    def set_buffer(self, buffer: Tensor) -> None:
        """Puts another vector in the place of the gradients', which are parts of that from now on."""
        parts = buffer.split([p.numel() for p in self._parameters])
        self._gradients = [part.view(p.shape) for part, p in zip(parts, self._parameters, strict=True)]
        self._buffer = buffer

    def gradients(self) -> list[Tensor]:
        """Each parameter's part of the buffer."""
        return self._gradients

    def parameters(self) -> list[Tensor]:
        """The parameters."""
        return self._parameters

    def is_last(self) -> bool:
        """Whether it is the last bucket of the pass."""
        return self._last
