"""Embeddings."""

from __future__ import annotations

from typing import Any, Self

from torchemu.frontends.numpy._grad_mode import no_grad
from torchemu.frontends.numpy._tensor.core import Tensor
from torchemu.frontends.numpy._tensor.creation import empty
from torchemu.frontends.numpy.nn import functional as F  # noqa: N812 (its usual name)
from torchemu.frontends.numpy.nn import init
from torchemu.frontends.numpy.nn.modules.module import Module
from torchemu.frontends.numpy.nn.parameter import Parameter
from torchemu.unsupported import unsupported

__all__ = ["Embedding", "EmbeddingBag"]


class Embedding(Module):
    """A table of vectors; for each number the row that it is the index of.

    Args:
        num_embeddings, embedding_dim: the number of rows and their length.
        padding_idx: the row that gets no gradient, and is zero at first.
        max_norm: rows that are used and have a larger norm are scaled down to it; None: they are not.
        norm_type: which norm.
        scale_grad_by_freq: divide the gradient of each row by how often it was used.
        sparse: not supported, but False.
        device, dtype: of the table.

    Attributes:
        weight: (num_embeddings, embedding_dim), at first normal.

    Raises:
        AssertionError: padding_idx is no row. NotImplementedError: sparse.
    """

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        padding_idx: int | None = None,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        sparse: bool = False,
        _weight: Tensor | None = None,
        _freeze: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        if sparse:
            raise unsupported("torch.nn.Embedding(sparse=True)", "its gradients are dense")
        self.num_embeddings, self.embedding_dim = num_embeddings, embedding_dim
        self.padding_idx = _row(padding_idx, num_embeddings)
        self.max_norm, self.norm_type = max_norm, norm_type
        self.scale_grad_by_freq, self.sparse = scale_grad_by_freq, sparse
        if _weight is None:
            table = empty(num_embeddings, embedding_dim, device=device, dtype=dtype)
            self.weight = Parameter(table, requires_grad=not _freeze)
            self.reset_parameters()
        else:
            if list(_weight.shape) != [num_embeddings, embedding_dim]:
                raise AssertionError("Shape of weight does not match num_embeddings and embedding_dim")
            self.weight = Parameter(_weight, requires_grad=not _freeze)

    def reset_parameters(self) -> None:
        """Gives the table new numbers."""
        _draw(self.weight, self.padding_idx)

    def forward(self, input: Tensor) -> Tensor:  # noqa: A002
        """(…) of integers → (…, embedding_dim)."""
        return F.embedding(
            input, self.weight, self.padding_idx, self.max_norm, self.norm_type, self.scale_grad_by_freq, self.sparse
        )

    def extra_repr(self) -> str:
        """The sizes, and what is not as usual."""
        text = f"{self.num_embeddings}, {self.embedding_dim}"
        if self.padding_idx is not None:
            text += f", padding_idx={self.padding_idx}"
        if self.max_norm is not None:
            text += f", max_norm={self.max_norm}"
        if self.norm_type != 2:
            text += f", norm_type={self.norm_type}"
        return text + (", scale_grad_by_freq=True" if self.scale_grad_by_freq else "")

    @classmethod
    def from_pretrained(
        cls, embeddings: Tensor, freeze: bool = True, padding_idx: int | None = None, **options: Any
    ) -> Self:
        """An embedding with a given table, (num_embeddings, embedding_dim), that has a gradient unless freeze."""
        if embeddings.dim() != 2:
            raise AssertionError("Embeddings parameter is expected to be 2-dimensional")
        rows, columns = embeddings.shape
        return cls(rows, columns, padding_idx, _weight=embeddings, _freeze=freeze, **options)


class EmbeddingBag(Module):
    """Sums, means or largest elements of rows of a table, bag by bag.

    Args:
        num_embeddings, embedding_dim: the number of rows and their length.
        max_norm: rows that are used and have a larger norm are scaled down to it; None: they are not.
        norm_type: which norm.
        scale_grad_by_freq: divide the gradient of each row by how often it was used.
        mode: "sum", "mean", or "max".
        sparse: not supported, but False.
        include_last_offset: the last offset is the end of the last bag.
        padding_idx: the row that is in no bag, and is zero at first.
        device, dtype: of the table.

    Attributes:
        weight: (num_embeddings, embedding_dim), at first normal.

    Raises:
        AssertionError: padding_idx is no row. NotImplementedError: sparse.
    """

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        mode: str = "mean",
        sparse: bool = False,
        _weight: Tensor | None = None,
        include_last_offset: bool = False,
        padding_idx: int | None = None,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        if sparse:
            raise unsupported("torch.nn.EmbeddingBag(sparse=True)", "its gradients are dense")
        self.num_embeddings, self.embedding_dim = num_embeddings, embedding_dim
        self.max_norm, self.norm_type, self.scale_grad_by_freq = max_norm, norm_type, scale_grad_by_freq
        self.mode, self.sparse, self.include_last_offset = mode, sparse, include_last_offset
        self.padding_idx = _row(padding_idx, num_embeddings)
        if _weight is None:
            self.weight = Parameter(empty(num_embeddings, embedding_dim, device=device, dtype=dtype))
            self.reset_parameters()
        else:
            if list(_weight.shape) != [num_embeddings, embedding_dim]:
                raise AssertionError("Shape of weight does not match num_embeddings and embedding_dim")
            self.weight = Parameter(_weight)

    def reset_parameters(self) -> None:
        """Gives the table new numbers."""
        _draw(self.weight, self.padding_idx)

    def forward(
        self,
        input: Tensor,  # noqa: A002
        offsets: Tensor | None = None,
        per_sample_weights: Tensor | None = None,
    ) -> Tensor:
        """(bags, integers), or integers one after another and where bags begin → (bags, embedding_dim)."""
        return F.embedding_bag(
            input,
            self.weight,
            offsets,
            self.max_norm,
            self.norm_type,
            self.scale_grad_by_freq,
            self.mode,
            self.sparse,
            per_sample_weights,
            self.include_last_offset,
            self.padding_idx,
        )

    def extra_repr(self) -> str:
        """The sizes, and what is not as usual."""
        text = f"{self.num_embeddings}, {self.embedding_dim}"
        if self.max_norm is not None:
            text += f", max_norm={self.max_norm}"
        if self.norm_type != 2:
            text += f", norm_type={self.norm_type}"
        if self.scale_grad_by_freq:
            text += f", scale_grad_by_freq={self.scale_grad_by_freq}"
        text += f", mode={self.mode!r}"
        return text if self.padding_idx is None else f"{text}, padding_idx={self.padding_idx}"

    @classmethod
    def from_pretrained(cls, embeddings: Tensor, freeze: bool = True, **options: Any) -> Self:
        """One with a given table, (num_embeddings, embedding_dim), that has a gradient unless freeze."""
        if embeddings.dim() != 2:
            raise AssertionError("Embeddings parameter is expected to be 2-dimensional")
        rows, columns = embeddings.shape
        made = cls(rows, columns, _weight=embeddings, **options)
        made.weight.requires_grad = not freeze
        return made


def _draw(table: Tensor, padding_idx: int | None) -> None:
    """Normal numbers, and zeros in the row that is padding."""
    init.normal_(table)
    if padding_idx is not None:
        with no_grad():
            table[padding_idx].fill_(0)


def _row(padding_idx: int | None, rows: int) -> int | None:
    """A row counted from the front.

    Raises:
        AssertionError: there is none such.
    """
    if padding_idx is None:
        return None
    if not -rows <= padding_idx < rows:
        raise AssertionError("padding_idx must be within num_embeddings")
    return padding_idx % rows
