"""Tensors that recorded functions keep for the backward pass."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchemu.frontends.numpy._autograd.variable import meta_of, version_of
from torchemu.frontends.numpy._tensor.core import Tensor

if TYPE_CHECKING:
    from torchemu.frontends.numpy._autograd.node import Node

SECOND_TIME = (
    "Trying to backward through the graph a second time (or directly access saved tensors after they have already been "
    "freed). Saved intermediate values of the graph are freed when you call .backward() or autograd.grad(). Specify "
    "retain_graph=True if you need to backward through the graph a second time or if you need to access saved tensors "
    "after calling backward."
)


class Saved:
    """A tensor that is kept for the backward pass, and must not be written until then.

    Args:
        t: the tensor.
        output: which result it is of the node that keeps it; None: it is none.
    """

    __slots__ = ("_output", "_tensor", "_version")

    def __init__(self, t: Tensor, output: int | None = None) -> None:
        self._tensor: Tensor | None = t if output is None else t.detach()  # t and the node would keep each other
        self._output, self._version = output, version_of(t)
        t._storage.tracked = True

    def unpack(self, node: Node) -> Tensor:
        """The tensor.

        Raises:
            RuntimeError: it has been written since, or let go.
        """
        t = self._tensor
        if t is None:
            raise RuntimeError(SECOND_TIME)
        if version_of(t) != self._version:
            raise RuntimeError(self._message(t, node))
        if self._output is None:
            return t
        alias = t.detach()
        meta = meta_of(alias)
        meta.requires_grad, meta.node, meta.output = True, node, self._output
        return alias

    def release(self) -> None:
        """Lets the tensor go."""
        self._tensor = None

    def _message(self, t: Tensor, node: Node) -> str:
        meta = t._autograd
        source, output = (node, self._output) if self._output is not None or meta is None else (meta.node, meta.output)
        whose = "" if source is None or output is None else f", which is output {output} of {source.name()},"
        place = "torch.cuda" if t.device.is_sip else "torch"
        return (
            "one of the variables needed for gradient computation has been modified by an inplace operation: "
            f"[{place}.{t.dtype.title}Tensor {list(t._shape)}]{whose} is at version {version_of(t)}; expected version "
            f"{self._version} instead."
        )
