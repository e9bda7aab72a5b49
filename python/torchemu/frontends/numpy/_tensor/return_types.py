"""The tuples that operations with several results return."""

# ruff: noqa: A001 (names are PyTorch's)

from __future__ import annotations

from collections import namedtuple
from typing import Any


def _return_type(name: str, *fields: str) -> Any:
    """A tuple with named fields that prints as PyTorch's do."""
    fields_of: Any = namedtuple(name, fields)  # type: ignore[misc]

    def __repr__(self: Any) -> str:  # noqa: N807
        rows = ",\n".join(f"{field}={getattr(self, field)!r}" for field in fields)
        return f"torch.return_types.{name}(\n{rows})"

    return type(name, (fields_of,), {"__repr__": __repr__, "__slots__": (), "__module__": "torch.return_types"})


max = _return_type("max", "values", "indices")
min = _return_type("min", "values", "indices")
median = _return_type("median", "values", "indices")
kthvalue = _return_type("kthvalue", "values", "indices")
cummax = _return_type("cummax", "values", "indices")
cummin = _return_type("cummin", "values", "indices")
sort = _return_type("sort", "values", "indices")
topk = _return_type("topk", "values", "indices")
aminmax = _return_type("aminmax", "min", "max")
nanmedian = _return_type("nanmedian", "values", "indices")
mode = _return_type("mode", "values", "indices")
linalg_inv_ex = _return_type("linalg_inv_ex", "inverse", "info")
linalg_slogdet = _return_type("linalg_slogdet", "sign", "logabsdet")
linalg_solve_ex = _return_type("linalg_solve_ex", "result", "info")
linalg_lstsq = _return_type("linalg_lstsq", "solution", "residuals", "rank", "singular_values")
linalg_cholesky_ex = _return_type("linalg_cholesky_ex", "L", "info")
linalg_qr = _return_type("linalg_qr", "Q", "R")
linalg_svd = _return_type("linalg_svd", "U", "S", "Vh")
linalg_eigh = _return_type("linalg_eigh", "eigenvalues", "eigenvectors")
linalg_eig = _return_type("linalg_eig", "eigenvalues", "eigenvectors")
triangular_solve = _return_type("triangular_solve", "solution", "cloned_coefficient")
svd = _return_type("svd", "U", "S", "V")
qr = _return_type("qr", "Q", "R")
