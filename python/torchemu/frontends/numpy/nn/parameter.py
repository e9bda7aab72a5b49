"""torch.nn.parameter: tensors that a module knows as its parameters when they become its attributes."""

from __future__ import annotations

from typing import Any

from torchemu.frontends.numpy._tensor.conversion import check_differentiable
from torchemu.frontends.numpy._tensor.core import Tensor
from torchemu.frontends.numpy._tensor.creation import empty

__all__ = ["Parameter"]


def _as_subclass(cls: type[Tensor], data: Any, requires_grad: bool) -> Any:
    """A tensor of that class in data's memory.

    Raises:
        AttributeError: data is no tensor. RuntimeError: it is not of floats, and gradients are wanted.
    """
    t = empty(0) if data is None else data.detach()
    if requires_grad:
        check_differentiable(t.dtype, "Only")
    t.__class__ = cls
    t.requires_grad = requires_grad
    return t


def _rebuilt(cls: type[Parameter], data: Tensor, requires_grad: bool) -> Parameter:
    """Returns what pickle makes a parameter of again."""
    return cls(data, requires_grad)


class Parameter(Tensor):
    """A tensor whose gradient is wanted. As an attribute of a module it is among the module's parameters.

    Args:
        data: a tensor, whose memory it shares; None: an empty one.
        requires_grad: whether gradients are recorded for it.
    """

    def __new__(cls, data: Tensor | None = None, requires_grad: bool = True) -> Parameter:
        return _as_subclass(cls, data, requires_grad)

    def __deepcopy__(self, memo: dict[int, Any]) -> Parameter:
        known = memo.get(id(self))
        if known is None:
            known = memo[id(self)] = type(self)(self.data.clone(), self.requires_grad)
        return known

    def __repr__(self) -> str:
        return f"Parameter containing:\n{self.detach().requires_grad_(self.requires_grad)!r}"

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        _, _, attributes = super().__reduce_ex__(protocol)
        state = {k: v for k, v in attributes.items() if k not in ("requires_grad", "grad", "grad_fn")}
        return _rebuilt, (type(self), self.data, self.requires_grad), state
