"""The derivatives of the operations of ``_tensor``, in tables."""

from torchemu.frontends.numpy._autograd.derivatives import (
    elementwise,
    indexing,
    parametric,
    products,
    reductions,
    shapes,
)

TABLES = tuple(module.DERIVATIVES for module in (elementwise, indexing, parametric, products, reductions, shapes))


def attach() -> None:
    """Tells the operations."""
    for table in TABLES:
        for op, derivative in table.items():
            op.derivative = derivative
