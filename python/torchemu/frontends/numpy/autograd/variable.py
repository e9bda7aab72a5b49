"""torch.autograd.variable: names from before tensors had gradients themselves, which programs still use."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torchemu.frontends.numpy._autograd import api, state
from torchemu.frontends.numpy._tensor.core import Tensor

__all__ = ["Variable"]


class _Engine:
    """What runs backward passes."""

    run_backward = staticmethod(api.run_backward)

    def queue_callback(self, callback: Callable[[], Any]) -> None:
        """Has it called at the end of the backward pass that is running.

        Raises:
            RuntimeError: none is running.
        """
        passes = state.current().passes
        if not passes:
            raise RuntimeError("Final callbacks can only be installed during backward pass.")
        passes[-1].append(callback)


class _VariableMeta(type):
    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, Tensor)


class Variable(metaclass=_VariableMeta):
    """A tensor: ``Variable(t, requires_grad)`` is one that shares t's memory."""

    _execution_engine = _Engine()

    def __new__(cls, data: Tensor, requires_grad: bool = False) -> Any:
        return data.detach().requires_grad_(requires_grad)
