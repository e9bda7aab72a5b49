"""Hooks that see a module's gradients: those of what it returned, and those of what it was called with.

What goes into a call, and what comes out of it, passes through a function that changes nothing. Its nodes are where a
backward pass enters and leaves the module.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

from torchemu.frontends.numpy._autograd.function import Function
from torchemu.frontends.numpy._autograd.node import Node
from torchemu.frontends.numpy._tensor.core import Tensor


class BackwardHookFunction(Function):
    """Returns its arguments."""

    @staticmethod
    def forward(ctx: Any, *args: Tensor) -> tuple[Tensor, ...]:
        """The arguments."""
        ctx.mark_non_differentiable(*[t for t in args if not t.requires_grad])
        return args

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        """The gradients."""
        return grads


def _through(values: tuple[Any, ...]) -> tuple[tuple[Any, ...], Node | None]:
    """The values, their tensors behind a node, if one of them requires a gradient; and the node."""
    tensors = [v for v in values if isinstance(v, Tensor)]
    if not any(t.requires_grad for t in tensors):
        return values, None
    passed = BackwardHookFunction.apply(*tensors)
    node = next((t.grad_fn for t in passed if t.grad_fn is not None), None)
    new = iter(passed)
    return tuple([next(new) if isinstance(v, Tensor) else v for v in values]), node


def _padded(values: Sequence[Any], places: Sequence[int], length: int) -> tuple[Any, ...]:
    """The values at these places, None elsewhere."""
    at = dict(zip(places, values, strict=True))
    return tuple([at.get(i) for i in range(length)])


def _replaced(what: str, grad: str, found: Any, before: tuple[Any, ...]) -> tuple[Any, ...]:
    """The gradients that a hook has returned instead of those before.

    Raises:
        RuntimeError: they are not as many.
    """
    if found is None:
        return before
    if isinstance(found, Tensor):
        found = (found,)
    if len(found) != len(before):
        raise RuntimeError(f"{what} returned an invalid number of {grad}, got {len(found)}, but expected {len(before)}")
    return tuple(found)


class BackwardHooks:
    """The hooks of a module for the backward pass through one call.

    Args:
        module: the module.
        hooks: called as hook(module, gradients of the arguments, gradients of the results) behind its backward pass.
        pre_hooks: called as hook(module, gradients of the results) before it.
    """

    def __init__(
        self, module: Any, hooks: Sequence[Callable[..., Any]], pre_hooks: Sequence[Callable[..., Any]]
    ) -> None:
        self._module, self._hooks, self._pre_hooks = module, hooks, pre_hooks
        self._count, self._leaves = 0, False  # how many arguments there are; whether one requires a gradient
        self._grad_outputs: tuple[Any, ...] | None = None

    def entered(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """The arguments for forward."""
        self._count = len(args)
        args, node = _through(args)
        if node is not None:
            places = [i for i, v in enumerate(args) if isinstance(v, Tensor)]
            node.register_hook(lambda found, _: self._left(places, found))
            self._leaves = True
        return args

    def returned(self, result: Any) -> Any:
        """The result for the caller."""
        values = result if isinstance(result, tuple) else (result,)
        if not all(isinstance(v, Tensor | None) for v in values):
            warnings.warn(
                "For backward hooks to be called, module output should be a Tensor or a tuple of Tensors "
                f"but received {type(result)}",
                stacklevel=4,
            )
            return result
        passed, node = _through(values)
        if node is not None:
            places = [i for i, v in enumerate(values) if isinstance(v, Tensor)]
            node.register_prehook(lambda grads: self._begun(places, len(values), grads))
        return passed if isinstance(result, tuple) else passed[0]

    def _begun(self, places: list[int], length: int, grads: tuple[Any, ...]) -> Any:
        """The gradients of the results are there."""
        padded = _padded(grads, places, length)
        for hook in self._pre_hooks:
            padded = _replaced("Backward pre hook", "grad_output", hook(self._module, padded), padded)
        self._grad_outputs = padded
        if not self._leaves:
            self._without_inputs(padded)
        return tuple([padded[i] for i in places])

    def _without_inputs(self, grad_outputs: tuple[Any, ...]) -> None:
        if self._hooks:
            warnings.warn(
                "Full backward hook is firing when gradients are computed with respect to module outputs since no "
                "inputs require gradients.",
                stacklevel=5,
            )
        for hook in self._hooks:
            found = hook(self._module, (None,) * self._count, grad_outputs)
            if found is not None and any(grad is not None for grad in found):
                raise RuntimeError(
                    "Backward hook for Modules where no input requires gradient should always return None or None for "
                    "all gradients."
                )

    def _left(self, places: list[int], found: tuple[Any, ...]) -> Any:
        """The gradients of the arguments are there."""
        if self._grad_outputs is None:
            return None  # the pass did not come through the results
        padded = _padded(found, places, self._count)
        for hook in self._hooks:
            padded = _replaced("Backward hook", "grad_input", hook(self._module, padded, self._grad_outputs), padded)
        self._grad_outputs = None
        return tuple([padded[i] for i in places])
