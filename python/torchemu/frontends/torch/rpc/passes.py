"""Backward passes over the graphs of several ranks.

A rank's graph is passed in pieces. One piece begins at the roots, and one at the tensors of each message that the rank
has sent, once their gradients have come back. A piece ends in leaves, whose gradients go into the rank's context, and
in tensors that the rank has received, whose gradients go to the sender. Where several pieces end in the same one, its
gradient is complete when all of them have run, as in one pass over all of the graph. For the same reason a piece waits
for others that have nodes in common with it, unless they in turn wait for what it brings about.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any, cast

import torch
from torch.autograd.graph import GradientEdge, get_gradient_edge

from torchemu.frontends.torch.rpc import agents, contexts, messages
from torchemu.frontends.torch.rpc.agents import Agent
from torchemu.frontends.torch.rpc.joints import Joint
from torchemu.frontends.torch.rpc.messages import ENDS
from torchemu.runtime.waiting import Line


class End:
    """A node in which pieces of a rank's graph end: that of a leaf, or of what a message has brought.

    Args:
        node: the node.
        agent: the rank's.

    Attributes:
        node, agent: the arguments.
        left: how many pieces end here that have not run.
        gradients: by the node's inputs.
    """

    def __init__(self, node: Any, agent: Agent) -> None:
        self.node, self.agent, self.left = node, agent, 0
        self.joint: Joint | None = getattr(node, "joint", None)
        self.gradients: list[torch.Tensor | None] = [None] * (len(self.joint.edges) if self.joint is not None else 1)

    def edges(self) -> list[GradientEdge]:
        """Returns the places at which gradients come in."""
        return [GradientEdge(self.node, number) for number in range(len(self.gradients))]

    def add(self, gradients: Sequence[torch.Tensor | None]) -> None:
        """Adds what a piece has brought."""
        for number, gradient in enumerate(gradients):
            before = self.gradients[number]
            if gradient is not None:
                self.gradients[number] = gradient if before is None else before + gradient


class Piece:
    """A part of a rank's graph that runs at once.

    Args:
        agent: the rank's.
        edges: where it begins.

    Attributes:
        agent, edges: the arguments.
        inner: the nodes in it that are no ends.
        ends: where it ends.
        after: pieces that wait for what it brings about.
        gradients: of the edges; None until they have come.
        has_run: it has.
    """

    def __init__(self, agent: Agent, edges: Sequence[GradientEdge]) -> None:
        self.agent, self.edges = agent, edges
        self.inner: set[Any] = set()
        self.ends: list[End] = []
        self.after: set[Piece] = set()
        self.gradients: Sequence[torch.Tensor] | None = None
        self.has_run = False

    def nodes(self) -> Iterator[Any]:
        """Yields the nodes that are reached from where it begins; it goes on from those that are no ends."""
        left, seen = [edge.node for edge in reversed(self.edges)], set()
        while left:
            node = left.pop()
            if node in seen:
                continue
            seen.add(node)
            yield node
            if not _is_end(node):
                left.extend(following for following, _ in reversed(node.next_functions) if following is not None)


def _is_end(node: Any) -> bool:
    return hasattr(node, "variable") or hasattr(node, "joint")


class Graph:
    """The pieces that a backward pass is made of.

    Args:
        agent: of the rank that has called it.
        roots: where it begins.
    """

    def __init__(self, agent: Agent, roots: Sequence[GradientEdge]) -> None:
        self._ends: dict[Any, End] = {}
        self.first = Piece(agent, roots)
        self.pieces = [self.first]
        self._of_joint: dict[Joint, Piece] = {}
        for piece in self.pieces:  # which grows
            self._follow(piece)
        for piece in reversed(self.pieces):
            self._look_after(piece)

    def _follow(self, piece: Piece) -> None:
        for node in piece.nodes():
            if not _is_end(node):
                piece.inner.add(node)
                continue
            end = self._ends.get(node)
            if end is None:
                end = self._ends[node] = End(node, piece.agent)
            end.left += 1
            piece.ends.append(end)
            if end.joint is not None and end.joint not in self._of_joint:
                made = self._of_joint[end.joint] = Piece(end.joint.agent, end.joint.edges)
                self.pieces.append(made)

    def _look_after(self, piece: Piece) -> None:
        """Notes which pieces wait for what one brings about."""
        left = [self._of_joint[end.joint] for end in piece.ends if end.joint is not None]
        while left:
            other = left.pop()
            if other not in piece.after:
                piece.after.add(other)
                left.extend(self._of_joint[end.joint] for end in other.ends if end.joint is not None)

    def of_joint(self, joint: Joint) -> Piece:
        """Returns the piece that begins at a joint."""
        return self._of_joint[joint]

    def hooked(self, agent: Agent) -> list[End]:
        """Returns the leaves of a rank that are parameters of models in DistributedDataParallel, which reduces several
        at once."""
        return [
            e for e in self._ends.values() if e.agent is agent and e.joint is None and e.node.variable in _of_models
        ]


class Pass:
    """One backward pass.

    Args:
        agent: of the rank that has called it.
        context: the number of the context.
        roots: the tensors that it begins at.
        retain_graph: the graph can be used again.
    """

    def __init__(self, agent: Agent, context: int, roots: Sequence[torch.Tensor], retain_graph: bool) -> None:
        self._agent, self._context, self._retains = agent, context, retain_graph
        self._graph = Graph(agent, [get_gradient_edge(root) for root in roots])
        self._graph.first.gradients = [torch.ones_like(root) for root in roots]
        self._under_way, self._line = 0, Line()
        self._error = ""

    def run(self) -> None:
        """Runs it, and waits for its end on all ranks.

        Raises:
            RuntimeError: a part of it has failed.
        """
        self._under_way += 1
        self._arrived(self._agent)
        while self._under_way:
            others = {p.agent.rank for p in self._graph.pieces if not p.has_run} - {self._agent.rank}
            self._line.wait("torch.distributed.autograd.backward()", needs=sorted(others))
        if self._error:
            raise RuntimeError(f"Error on Node {self._agent.id}: {self._error}")

    def _arrived(self, agent: Agent) -> None:
        """Runs what can run on the running rank, of this agent, where gradients have arrived."""
        try:
            while (piece := self._next(agent)) is not None:
                self._run([piece, *(p for p in self._ready(agent) if p is not piece and p.inner & piece.inner)])
        except ENDS:
            raise
        except Exception as error:
            prefix = "" if agent is self._agent else f"Error on Node {agent.id}: "
            self._error = self._error or prefix + str(error)
        finally:
            self._under_way -= 1
            if not self._under_way:
                self._line.call_all()

    def _ready(self, agent: Agent) -> list[Piece]:
        found = [p for p in self._graph.pieces if p.agent is agent and p.gradients is not None and not p.has_run]
        return [] if self._error else found

    def _next(self, agent: Agent) -> Piece | None:
        """Returns a piece that can run: others with nodes in common have their gradients, too, or wait for it. Where
        nothing else is under way, which could bring any, it need not wait."""
        ready = self._ready(agent)
        for piece in ready:
            if not any(other not in piece.after and other.gradients is None for other in self._beside(piece)):
                return piece
        return ready[0] if ready and self._under_way == 1 else None

    def _beside(self, piece: Piece) -> list[Piece]:
        """Returns the pieces that have not run and have nodes in common with one."""
        others = [p for p in self._graph.pieces if p.agent is piece.agent and not p.has_run and p is not piece]
        return [other for other in others if other.inner & piece.inner]

    def _run(self, pieces: list[Piece]) -> None:
        for piece in pieces:
            piece.has_run = True
        ends = [*dict.fromkeys(end for piece in pieces for end in piece.ends)]
        with _hooks_put_off([end.node.variable for end in ends if end.joint is None]):
            found = iter(
                torch.autograd.grad(
                    [edge for piece in pieces for edge in piece.edges],
                    [edge for end in ends for edge in end.edges()],
                    [gradient for piece in pieces for gradient in piece.gradients or ()],
                    retain_graph=self._retains or any(self._beside(piece) for piece in pieces),
                    allow_unused=True,
                )
            )
        for end in ends:
            end.add([next(found) for _ in end.gradients])
        for piece in pieces:
            for end in piece.ends:
                end.left -= 1
        self._end([end for end in ends if end.left == 0])

    def _end(self, ends: list[End]) -> None:
        """Passes on the gradients of nodes at which all pieces have arrived that do."""
        hooked = self._graph.hooked(ends[0].agent) if ends else []
        leaves = [end for end in ends if end.joint is None and end not in hooked]
        if any(end in ends for end in hooked) and all(end.left == 0 for end in hooked):
            leaves += hooked
        for end in ends:
            if end.joint is not None:
                self._send(end, end.joint)
        self._accumulate([end for end in leaves if end.gradients[0] is not None])

    def _send(self, end: End, joint: Joint) -> None:
        """Sends gradients to where their tensors came from."""
        gradients = [joint.zeros(n) if g is None else g for n, g in enumerate(end.gradients)]
        kept = [g.detach().cpu() if g.device.type != "cpu" else g.detach().clone() for g in gradients]
        piece = self._graph.of_joint(joint)

        def arrive() -> None:
            contexts.enter(self._context)
            devices = [device for _, _, device in joint.like]
            piece.gradients = [g.to(d) if d.type != "cpu" else g for g, d in zip(kept, devices, strict=True)]
            self._arrived(joint.agent)

        messages.deliver(end.agent, joint.agent, messages.size(kept), arrive)
        self._under_way += 1

    def _accumulate(self, ends: list[End]) -> None:
        """Lets gradients go through .grad, so that hooks hear of them, and then into the context. As in PyTorch, those
        that a program has for what is in .grad do not."""
        own = contexts.retrieve(self._context)
        for end in [end for end in ends if end.node.variable._post_accumulate_grad_hooks]:
            own.accumulate(end.node.variable, _hooked(end.node.variable, end.gradients[0]))
            ends.remove(end)
        leaves = [end.node.variable for end in ends]
        before = [leaf.grad for leaf in leaves]
        for leaf in leaves:
            leaf.grad = None
        if ends:
            torch.autograd.backward([end.edges()[0] for end in ends], [end.gradients[0] for end in ends])
        for leaf, kept in zip(leaves, before, strict=True):
            own.accumulate(leaf, leaf.grad)
            leaf.grad = kept


def _hooked(leaf: torch.Tensor, gradient: Any) -> torch.Tensor:
    """Returns what the hooks of a leaf make of its gradient."""
    for hook in [*(leaf._backward_hooks or {}).values()]:
        changed = hook(gradient)
        gradient = gradient if changed is None else changed
    return cast(torch.Tensor, gradient)


@contextlib.contextmanager
def _hooks_put_off(leaves: Sequence[torch.Tensor]) -> Iterator[None]:
    """Lets hooks of leaves hear nothing of parts of gradients: they run once all parts have come."""
    hooks = [leaf._backward_hooks for leaf in leaves if leaf._backward_hooks]
    kept = [dict(one) for one in hooks]
    for one in hooks:
        one.clear()
    try:
        yield
    finally:
        for one, own in zip(hooks, kept, strict=True):
            one.update(own)


_of_models: Any = torch.utils.weak.WeakTensorKeyDictionary()
"""Parameters of models in DistributedDataParallel."""


def note_model(parameters: Sequence[torch.Tensor]) -> None:
    """Notes the parameters of a model in DistributedDataParallel."""
    for parameter in parameters:
        _of_models[parameter] = True


def backward(context_id: int, roots: Sequence[torch.Tensor], retain_graph: bool = False) -> None:
    """Runs a backward pass over the graphs of all ranks on which the roots depend.

    Args:
        context_id: the number of the context, into which gradients go.
        roots: scalars of the running rank's.
        retain_graph: the graph can be used again.

    Raises:
        RuntimeError: a root is no scalar, or does not depend on anything; a part of the pass has failed.
    """
    if not isinstance(context_id, int) or not isinstance(roots, list | tuple):
        raise TypeError(
            "backward(): incompatible function arguments: a context's number and a list of tensors are wanted"
        )
    contexts.retrieve(context_id)
    if not roots:
        raise RuntimeError("No tensors provided for gradient computation.")
    for root in roots:
        if not root.requires_grad:
            raise RuntimeError("requires_grad not set on root")
        if root.numel() != 1:
            raise RuntimeError(f"{root.name or ''} is not a scalar, all roots need to be scalar")
        if root.grad_fn is None:
            raise RuntimeError(f"{root.name or ''} does not have a valid gradient function.")
    Pass(agents.current(), context_id, roots, retain_graph).run()
