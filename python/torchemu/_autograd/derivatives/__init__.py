"""The derivatives of the operations of ``torchemu._tensor``, in tables."""

from torchemu._autograd.derivatives import arithmetic, products, reductions, shapes

TABLES = (arithmetic.DERIVATIVES, products.DERIVATIVES, reductions.DERIVATIVES, shapes.DERIVATIVES)


def attach() -> None:
    """Tells the operations."""
    for table in TABLES:
        for op, derivative in table.items():
            op.derivative = derivative
