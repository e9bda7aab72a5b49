"""Embeddings."""

from __future__ import annotations

from typing import Any

from torchemu.frontends.numpy._tensor.core import Tensor
from torchemu.frontends.numpy._tensor.creation import empty
from torchemu.frontends.numpy.nn import functional as F  # noqa: N812 (its usual name)
from torchemu.frontends.numpy.nn import init
from torchemu.frontends.numpy.nn.modules.module import Module
from torchemu.frontends.numpy.nn.parameter import Parameter

__all__ = ["Embedding"]


class Embedding(Module):
    """A table of vectors; for each number the row that it is the index of.

    Args:
        num_embeddings, embedding_dim: the number of rows and their length.
        device, dtype: of the table.

    Attributes:
        weight: (num_embeddings, embedding_dim), at first normal.
    """

    def __init__(self, num_embeddings: int, embedding_dim: int, *, device: Any = None, dtype: Any = None) -> None:
        super().__init__()
        self.num_embeddings, self.embedding_dim = num_embeddings, embedding_dim
        self.weight = Parameter(empty(num_embeddings, embedding_dim, device=device, dtype=dtype))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Gives the table new numbers."""
        init.normal_(self.weight)

    def forward(self, input: Tensor) -> Tensor:  # noqa: A002
        """(…) of integers → (…, embedding_dim)."""
        return F.embedding(input, self.weight)

    def extra_repr(self) -> str:
        """The sizes."""
        return f"{self.num_embeddings}, {self.embedding_dim}"
