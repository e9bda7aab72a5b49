"""Backward passes.

Nodes run when the gradients of all their results are complete, the latest recorded first. A pass keeps all that it
knows in itself: a rank may wait in the middle of one while others run theirs, and a node may start another.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from typing import Any

from torchemu.frontends.numpy import _settings, _streams
from torchemu.frontends.numpy._autograd.node import AccumulateGrad, Node
from torchemu.frontends.numpy._autograd.variable import Edge, Metadata, metadata_of
from torchemu.frontends.numpy._streams import Stream
from torchemu.frontends.numpy._tensor.core import Tensor

_END: Any = object()


class Wanted:
    """The gradients that a pass is for, where it is not for those of all leaves.

    Args:
        edges: where they arrive.
        accumulate: add them to the leaves' grad too.
    """

    def __init__(self, edges: Sequence[Edge], accumulate: bool) -> None:
        self.edges, self.accumulate = edges, accumulate
        self.found: dict[Edge, Tensor] = {}
        self._ends = {edge.node for edge in edges}
        self._needed: set[Node] = set()

    def find_needed(self, order: Sequence[Node]) -> None:
        """Looks for the nodes that lead to one. The order has each node behind all that it hands gradients to."""
        for node in order:
            if any(edge is not None and (edge.node in self._needed or edge.node in self._ends) for edge in node.edges):
                self._needed.add(node)

    def goes_on(self, node: Node) -> bool:
        """Reports whether the node has to run."""
        return node in self._needed or (self.accumulate and isinstance(node, AccumulateGrad) and node in self._ends)

    def capture(self, node: Node, grads: Sequence[Tensor | None]) -> None:
        """Looks for wanted ones among the gradients of a node's results."""
        if node in self._ends:
            for edge in self.edges:
                grad = grads[edge.output] if edge.node is node else None
                if grad is not None:
                    self.found[edge] = grad


class Pass:
    """One backward pass.

    Args:
        keep: whether what nodes have kept is needed again.
        wanted: what it is for; None: for all leaves.
    """

    def __init__(self, keep: bool, wanted: Wanted | None) -> None:
        self._keep, self._wanted = keep, wanted
        self._grads: dict[Node, list[Tensor | None]] = {}
        self._awaited: dict[Node, int] = {}
        self._ready: list[tuple[float, int, Node]] = []
        self._made_ready = 0
        self._stream = self._at = _streams.current()
        self._streams_of_leaves: dict[Stream, None] = {}

    def run(self, roots: Sequence[tuple[Edge, Tensor]]) -> None:
        """Hands these gradients on, until all have arrived."""
        self._awaited, order = _dependencies([edge.node for edge, _ in roots])
        if self._wanted is not None:
            self._wanted.find_needed(order)
        order.clear()  # nodes are free as soon as they have run
        for edge, grad in roots:
            _follow(edge.node.stream, self._stream)
            self._add(edge, grad)
        for node in dict.fromkeys(edge.node for edge, _ in roots):
            if not self._awaited[node]:
                self._push(node)
        try:
            while self._ready:
                self._step(heapq.heappop(self._ready)[2])
        finally:
            _streams.set_stream(self._stream)
        for stream in self._streams_of_leaves:
            _follow(self._stream, stream)

    def _push(self, node: Node) -> None:
        self._made_ready += 1
        heapq.heappush(self._ready, (-node.number, self._made_ready, node))

    def _add(self, edge: Edge, grad: Tensor | None) -> None:
        node, output = edge
        grads = self._grads.get(node)
        if grads is None:
            grads = self._grads[node] = [None] * max(len(node.outputs), 1)
        before = grads[output]
        grads[output] = grad if before is None else before if grad is None else before + grad

    def _step(self, node: Node) -> None:
        """Runs a node, on the stream that it was recorded on."""
        if node.stream is not self._at:
            self._at = node.stream
            _streams.set_stream(node.stream)
        if isinstance(node, AccumulateGrad):
            self._streams_of_leaves[node.stream] = None
        del self._awaited[node]
        self._hand_on(node, self._found(node, self._grads.pop(node)))

    def _found(self, node: Node, grads: list[Tensor | None]) -> Sequence[Any]:
        """The gradients of a node's operands; none where nobody wants them."""
        wanted = self._wanted
        goes_on = wanted is None or wanted.goes_on(node)
        if wanted is not None and goes_on:
            wanted.capture(node, grads)  # as PyTorch has it: hooks count only where a pass ends
        if node.hooked:
            node.before(grads)
        if wanted is not None and not goes_on:
            wanted.capture(node, grads)
            return ()
        node.kept = self._keep
        found = node.apply(grads)
        if not self._keep:
            node.release()
        return found

    def _hand_on(self, node: Node, found: Sequence[Any]) -> None:
        awaited, stream = self._awaited, node.stream
        for at, (edge, grad) in enumerate(zip(node.edges, found, strict=False)):
            if edge is None:
                continue
            target = edge.node
            self._add(edge, None if grad is None else fitting(grad, expected(edge), node, at))
            if target.stream is not stream:
                _follow(target.stream, stream)
            awaited[target] -= 1
            if not awaited[target]:
                self._push(target)


def _dependencies(roots: Sequence[Node]) -> tuple[dict[Node, int], list[Node]]:
    """From how many places each node gets gradients; and the nodes, each behind those it hands gradients to."""
    awaited = dict.fromkeys(roots, 0)
    order: list[Node] = []
    seen: set[Node] = set()
    for root in roots:
        stack = [] if root in seen else [(root, iter(root.edges))]
        seen.add(root)
        while stack:
            node, edges = stack[-1]
            edge = next(edges, _END)
            if edge is _END:
                order.append(node)
                stack.pop()
            elif edge is not None:
                awaited[edge.node] = awaited.get(edge.node, 0) + 1
                if edge.node not in seen:
                    seen.add(edge.node)
                    stack.append((edge.node, iter(edge.node.edges)))
    return awaited, order


def _follow(stream: Stream, other: Stream) -> None:
    """Returns what is put on a stream from now on comes after what is on another now."""
    if stream is not other:
        stream.wait_stream(other)


def expected(edge: Edge) -> Metadata:
    """Returns what a gradient that goes there has to look like."""
    node, output = edge
    about = metadata_of(node.variable) if isinstance(node, AccumulateGrad) else node.outputs[output]
    assert about is not None  # what is no tensor has no edge
    return about


def fitting(grad: Any, about: Metadata, node: Node, at: int) -> Tensor:
    """A gradient as that of its tensor: summed to its shape and converted. It is the node's for its operand at.

    Raises:
        RuntimeError: it is none.
    """
    if not isinstance(grad, Tensor):
        raise RuntimeError(f"expected Variable or None (got {type(grad).__name__})")
    if grad._shape != about.shape:
        if not _expands(about.shape, grad._shape):
            raise RuntimeError(
                f"Function {node.name()} returned an invalid gradient at index {at} - got {list(grad._shape)} but "
                f"expected shape compatible with {list(about.shape)}"
            )
        grad = summed(grad, about.shape)
    if grad.dtype is not about.dtype:
        grad = grad.to(about.dtype)
    if grad.device is about.device or grad.device == about.device:
        return grad
    return grad.to(about.device, non_blocking=True)


def _expands(shape: tuple[int, ...], to: tuple[int, ...]) -> bool:
    """Reports whether a tensor of a shape can be expanded to another."""
    return len(shape) <= len(to) and all(n in (1, m) for n, m in zip(reversed(shape), reversed(to), strict=False))


def summed(grad: Tensor, shape: tuple[int, ...]) -> Tensor:
    """Summed over the dimensions along which a tensor of the shape was expanded."""
    new = len(grad._shape) - len(shape)
    axes = [*range(new), *[i + new for i, n in enumerate(shape) if n == 1 and grad._shape[i + new] != 1]]
    return grad.sum(axes, keepdim=True).reshape(shape)


def backward_pass(roots: Sequence[tuple[Edge, Tensor]], keep: bool, wanted: Wanted | None = None) -> None:
    """Runs a pass, whose operations are not recorded.

    Args:
        roots: where it starts: tensors' edges with their gradients.
        keep, wanted: see Pass.
    """
    settings = _settings.current()
    before, settings.gradients = settings.gradients, False
    try:
        Pass(keep, wanted).run(roots)
    finally:
        settings.gradients = before
