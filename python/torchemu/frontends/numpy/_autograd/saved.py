"""Tensors that recorded functions keep for the backward pass."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from torchemu.frontends.numpy import _settings
from torchemu.frontends.numpy._autograd import state
from torchemu.frontends.numpy._autograd.variable import AutogradMeta, Edge, edge_of, meta_of, set_meta, version_of
from torchemu.frontends.numpy._tensor.core import Tensor

if TYPE_CHECKING:
    from torchemu.frontends.numpy._autograd.node import Node

SECOND_TIME = (
    "Trying to backward through the graph a second time (or directly access saved tensors after they have already been "
    "freed). Saved intermediate values of the graph are freed when you call .backward() or autograd.grad(). Specify "
    "retain_graph=True if you need to backward through the graph a second time or if you need to access saved tensors "
    "after calling backward."
)


_HINTS = {
    False: (
        "enable anomaly detection to find the operation that failed to compute its gradient, with "
        "torch.autograd.set_detect_anomaly(True, check_nan=False)."
    ),
    True: (
        "the backtrace further above shows the operation that failed to compute its gradient. The variable in question "
        "was changed in there or anywhere later. Good luck!"
    ),
}


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
            f"{self._version} instead. Hint: {_HINTS[state.current().anomaly.on]}"
        )


class Packed:
    """A tensor that the program keeps, as it likes: see torch.autograd.graph.saved_tensors_hooks.

    Args:
        t: the tensor.
        output: as for Saved.
        pack, unpack: the program's hooks.
    """

    __slots__ = ("_edge", "_output", "_packed", "_unpack")

    def __init__(
        self, t: Tensor, output: int | None, pack: Callable[[Tensor], Any], unpack: Callable[[Any], Any]
    ) -> None:
        self._edge: Edge | None = edge_of(t) if output is None else None
        self._output, self._unpack = output, unpack
        version = version_of(t)
        self._packed: Any = _unrecorded(pack, t if output is None else t.detach())
        if version_of(t) != version:
            raise RuntimeError(
                "A saved tensor pack hook is modifying its input in place. Tensors provided as input to pack hook can "
                "not be modified by in-place operations as this can lead to unexpected side-effects. Please open an "
                "issue if you need to perform in-place operations on the input to a pack hook."
            )

    def unpack(self, node: Node) -> Tensor:
        """The tensor, with its history.

        Raises:
            TypeError: the hook returned something else. RuntimeError: it has been let go.
        """
        if self._unpack is None:
            raise RuntimeError(SECOND_TIME)
        t = _unrecorded(self._unpack, self._packed)
        if not isinstance(t, Tensor):
            raise TypeError(
                f"Output of saved tensor unpack_hook expected to be a Tensor but got result of type {type(t).__name__}"
            )
        alias = t.detach()
        edge = self._edge if self._output is None else Edge(node, self._output)
        if edge is not None:
            set_meta(alias, AutogradMeta(True, edge.node, edge.output))
        return alias

    def release(self) -> None:
        """Lets it go."""
        self._packed = self._unpack = None  # type: ignore[assignment]


def _unrecorded(hook: Callable[[Any], Any], given: Any) -> Any:
    settings = _settings.current()
    before, settings.gradients = settings.gradients, False
    try:
        return hook(given)
    finally:
        settings.gradients = before


def save(t: Tensor, output: int | None = None) -> Saved | Packed:
    """Keeps a tensor; output: as for Saved."""
    hooks = state.current().saved_hooks
    return Packed(t, output, *hooks[-1]) if hooks else Saved(t, output)
