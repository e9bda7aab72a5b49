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
sort = _return_type("sort", "values", "indices")
