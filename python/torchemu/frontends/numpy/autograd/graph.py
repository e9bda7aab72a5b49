"""torch.autograd.graph: what a program can see of the graph that backward passes follow."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

from torchemu.frontends.numpy._autograd import state
from torchemu.frontends.numpy._autograd.node import Node
from torchemu.frontends.numpy._autograd.variable import Edge, count_write, edge_of
from torchemu.frontends.numpy._device import device
from torchemu.frontends.numpy._tensor.core import Tensor

__all__ = [
    "GradientEdge",
    "Node",
    "disable_saved_tensors_hooks",
    "get_gradient_edge",
    "increment_version",
    "save_on_cpu",
    "saved_tensors_hooks",
]

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


class saved_tensors_hooks:  # noqa: N801 (PyTorch's names)
    """In its block, tensors that recorded functions keep for the backward pass are given to pack_hook, and what that
    returns is kept instead. unpack_hook makes tensors of it again.

    Args:
        pack_hook: is given the tensor. It must not write into it.
        unpack_hook: is given what pack_hook returned.

    Raises:
        RuntimeError: such hooks are not allowed there; see disable_saved_tensors_hooks.
    """

    def __init__(self, pack_hook: Callable[[Tensor], Any], unpack_hook: Callable[[Any], Tensor]) -> None:
        self.pack_hook, self.unpack_hook = pack_hook, unpack_hook

    def __enter__(self) -> Self:
        own = state.current()
        if own.no_saved_hooks:
            raise RuntimeError(own.no_saved_hooks[-1])
        own.saved_hooks.append((self.pack_hook, self.unpack_hook))
        return self

    def __exit__(self, *_: object) -> None:
        state.current().saved_hooks.pop()


class save_on_cpu(saved_tensors_hooks):  # noqa: N801
    """In its block, tensors are kept in the host's memory until the backward pass.

    Args:
        pin_memory: means nothing here: there is no other memory than the host's.
        device_type: means nothing: there are no devices of another kind than those simulated.
    """

    def __init__(self, pin_memory: bool = False, device_type: str = "cuda") -> None:
        super().__init__(self._moved_away, self._moved_back)

    @staticmethod
    def _moved_away(t: Tensor) -> tuple[device, Tensor]:
        return t.device, t.cpu()

    @staticmethod
    def _moved_back(packed: tuple[device, Tensor]) -> Tensor:
        where, t = packed
        return t.to(where, non_blocking=True)


class disable_saved_tensors_hooks:  # noqa: N801
    """In its block saved_tensors_hooks are not allowed.

    Args:
        error_message: what to say to those who try.

    Raises:
        RuntimeError: there are such hooks already.
    """

    def __init__(self, error_message: str) -> None:
        self._text = error_message

    def __enter__(self) -> None:
        own = state.current()
        if own.saved_hooks:
            raise RuntimeError(self._text)
        own.no_saved_hooks.append(self._text)

    def __exit__(self, *_: object) -> None:
        state.current().no_saved_hooks.pop()
