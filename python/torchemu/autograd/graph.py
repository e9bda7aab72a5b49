"""torch.autograd.graph: what a program can see of the graph that backward passes follow."""

from __future__ import annotations

from torchemu._autograd.node import Node
from torchemu._autograd.variable import Edge, count_write, edge_of
from torchemu._tensor.core import Tensor

__all__ = ["GradientEdge", "Node", "get_gradient_edge", "increment_version"]

GradientEdge = Edge


def get_gradient_edge(tensor: Tensor) -> Edge:
    """Where the tensor's gradient goes: a node, and the number of its output that the tensor is.

    Raises:
        RuntimeError: the tensor requires no gradient.
    """
    edge = edge_of(tensor)
    if edge is None:
        raise RuntimeError("It is not possible to get the gradient edge for a Tensor that does not require gradients")
    return edge


def increment_version(tensor: Tensor | list[Tensor]) -> None:
    """Says that a tensor, or several, have been written by other means than operations."""
    for t in [tensor] if isinstance(tensor, Tensor) else tensor:
        count_write(t)
