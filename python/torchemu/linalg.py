"""torch.linalg: norms and products. There are no decompositions."""

# ruff: noqa: A002 (names are PyTorch's)

from __future__ import annotations

from typing import Any

from torchemu._tensor.core import Tensor
from torchemu._tensor.linalg import cross, matmul
from torchemu._tensor.reductions import norm as _norm

__all__ = ["cross", "matmul", "norm", "vector_norm"]


def vector_norm(x: Tensor, ord: float = 2, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    """The norm of all elements, or along dimensions, taken as one vector."""
    return _norm(x, ord, dim, keepdim, dtype)


def norm(A: Tensor, ord: Any = None, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:  # noqa: N803
    """The norm of a vector, or Frobenius's norm of a matrix.

    Raises:
        NotImplementedError: another norm of matrices.
    """
    of_matrix = ord not in (None, "fro") and (
        len(A.shape) == 2 if dim is None else not isinstance(dim, int) and len(dim) == 2
    )
    if of_matrix:
        raise NotImplementedError(f"linalg.norm of matrices with ord={ord!r} is not supported; 'fro' is")
    return _norm(A, 2 if ord in (None, "fro") else ord, dim, keepdim, dtype)
