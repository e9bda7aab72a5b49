"""Joints of the graphs of two ranks: the tensors of a message that was sent in a context of distributed autograd.

On the sender's side the graph ends in the tensors that were sent, on the receiver's it begins with a node that hands
the copies out. That node knows the joint, so a backward pass finds the sender's side through it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch.autograd.graph import GradientEdge, get_gradient_edge

from torchemu.frontends.torch.rpc import contexts
from torchemu.frontends.torch.rpc.agents import Agent


class Joint:
    """The tensors of one message that require gradients.

    Args:
        agent: the sender's.
        context: the number of the context.
        number: of the message.
        tensors: them.

    Attributes:
        agent, context, number: the arguments.
        edges: where gradients enter the sender's graph.
        like: what tells shapes, dtypes and devices of gradients.
    """

    def __init__(self, agent: Agent, context: int, number: int, tensors: Sequence[torch.Tensor]) -> None:
        self.agent, self.context, self.number = agent, context, number
        self.edges: list[GradientEdge] = [get_gradient_edge(t) for t in tensors]
        self.like = [(t.shape, t.dtype, t.device) for t in tensors]

    @property
    def next_functions(self) -> tuple[tuple[Any, int], ...]:
        """Returns the nodes that gradients go to, and the numbers of their inputs, as a node of PyTorch's does."""
        return tuple((edge.node, edge.output_nr) for edge in self.edges)

    def name(self) -> str:
        """Returns the name of such a node of PyTorch's."""
        return "torch::distributed::autograd::SendRpcBackward"

    def zeros(self, index: int) -> torch.Tensor:
        """Returns the gradient of a tensor that nothing depends on."""
        shape, dtype, device = self.like[index]
        return torch.zeros(shape, dtype=dtype, device=device)

    def received(self, tensors: Sequence[torch.Tensor], wanting: Sequence[bool]) -> list[torch.Tensor]:
        """Returns the copies as the receiver's graph begins with them.

        Args:
            tensors: the copies of all tensors in the message.
            wanting: for each, whether it requires a gradient.
        """
        context = contexts.entered_by(self.context, self.agent.id)
        wanted = [t for t, wants in zip(tensors, wanting, strict=True) if wants]
        with torch.enable_grad():
            outputs = iter(RecvRpc.apply(torch.empty(0, requires_grad=True), self, *wanted))
        found = [next(outputs) if wants else t for t, wants in zip(tensors, wanting, strict=True)]
        first = next(t for t, wants in zip(found, wanting, strict=True) if wants)
        context.received[self.number] = first.grad_fn
        return found


class RecvRpc(torch.autograd.Function):
    """The beginning of the receiver's graph. Its node is named as PyTorch's."""

    @staticmethod
    def forward(ctx: Any, anchor: torch.Tensor, joint: Joint, *tensors: torch.Tensor) -> Any:
        """Hands the tensors out; the anchor makes them require gradients."""
        ctx.joint = joint
        return tuple(tensor.detach() for tensor in tensors)

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        """Refuses a pass that does not go on to the sender."""
        raise RuntimeError(
            "loss.backward() ends at a tensor that came by RPC: use torch.distributed.autograd.backward(context_id, "
            "[loss])"
        )


RecvRpc._backward_cls.name = lambda node: "torch::distributed::autograd::RecvRpcBackward"


def of(agent: Agent, to: int, context: int, tensors: Sequence[torch.Tensor]) -> Joint | None:
    """Returns the joint of a message, and notes it in the sender's context; None where no gradient will come back.

    Args:
        agent: the sender's.
        to: the number of the receiver.
        context: the number of the context.
        tensors: in the message.
    """
    own = contexts.entered_by(context, to)
    wanted = [t for t in tensors if t.requires_grad]
    if not wanted or not torch.is_grad_enabled():
        return None
    joint = Joint(agent, context, contexts.message_number(), wanted)
    own.sent[joint.number] = joint
    return joint
