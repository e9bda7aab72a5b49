"""torch.autograd.Function: operations whose forward and backward a program writes itself."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torchemu.frontends.numpy import _settings
from torchemu.frontends.numpy._autograd.node import Node
from torchemu.frontends.numpy._autograd.saved import Saved
from torchemu.frontends.numpy._autograd.variable import (
    AutogradMeta,
    edge_of,
    metadata_of,
    set_meta,
    version_of,
    wants_grad,
)
from torchemu.frontends.numpy._tensor.core import Tensor

_VIEW_OF_FUNCTION = (
    "Output {} of {} is a view and is being modified inplace. This view was created inside a custom Function (or "
    "because an input was returned as-is) and the autograd logic to handle view+inplace would override the custom "
    "backward associated with the custom Function, leading to incorrect gradients. This behavior is forbidden. You can "
    "fix this by cloning the output of the custom Function."
)


class FunctionCtx:
    """The context that forward hands to backward: it is the first argument of both, and keeps any attributes."""

    needs_input_grad: tuple[bool, ...]

    def save_for_backward(self, *tensors: Tensor | None) -> None:
        """Keeps operands and results for backward, which has them in saved_tensors."""
        self._to_save = tensors

    _to_save: Sequence[Tensor | None] = ()


class BackwardFunction(Node, FunctionCtx):
    """A recorded call of a Function: the ctx of its forward and backward.

    Attributes:
        needs_input_grad: for each argument of forward whether its gradient is wanted.
    """

    def __init__(self, cls: type[Function], args: tuple[Any, ...], recorded: bool) -> None:
        tensors = [t if isinstance(t, Tensor) else None for t in args]
        super().__init__([edge_of(t) if recorded and t is not None else None for t in tensors], ())
        self._cls, self._of_tensors = cls, [t is not None for t in tensors]
        self.needs_input_grad = tuple([t is not None and wants_grad(t) for t in tensors])
        self._recorded = recorded
        self._saved: list[Saved | None] = []

    def returned(self, results: tuple[Any, ...], args: tuple[Any, ...]) -> tuple[Any, ...]:
        """Returns what apply returns for what forward has returned: the same, with this as its history."""
        self.outputs = [metadata_of(t) if isinstance(t, Tensor) else None for t in results]
        inputs = [t for t in args if isinstance(t, Tensor)]
        wrapped = tuple([
            self._wrapped(t, i, _among(t, inputs)) if isinstance(t, Tensor) else t for i, t in enumerate(results)
        ])  # fmt: skip
        if self._recorded:
            self._saved = [None if t is None else self._kept(t, i, wrapped) for i, t in enumerate(self._to_save)]
        self._to_save = ()
        return wrapped

    def _wrapped(self, t: Tensor, output: int, is_input: bool) -> Tensor:
        differentiable = self._recorded and t.dtype.is_floating_point
        if is_input:
            base = t if t._base is None else t._base
            t = t.detach()
            t._base = base
        if differentiable:
            meta = set_meta(t, AutogradMeta(True, self, output))
            meta.version = version_of(t)
            if t._base is not None:
                meta.origin = _VIEW_OF_FUNCTION.format(output, self.name())
        return t

    def _kept(self, t: Any, at: int, results: Sequence[Any]) -> Saved:
        if not isinstance(t, Tensor):
            raise TypeError(
                f"save_for_backward can only save variables, but argument {at} is of type {type(t).__name__}"
            )
        output = next((i for i, result in enumerate(results) if result is t), None)
        return Saved(t, output if t._autograd is not None and t._autograd.node is self else None)

    @property
    def saved_tensors(self) -> tuple[Tensor | None, ...]:
        """Returns what save_for_backward was given.

        Raises:
            RuntimeError: it has been let go, or written since.
        """
        return tuple([None if saved is None else saved.unpack(self) for saved in self._saved])

    def apply(self, grads: list[Tensor | None]) -> Sequence[Any]:
        """Calls backward.

        Raises:
            RuntimeError: it returned not as many gradients as forward has arguments, or one of what is no tensor.
        """
        if self._cls.takes_all:
            return self._checked(tuple(self._cls.backward(self, self._taken(grads))))
        grads = [self._zeros(i) if grad is None else grad for i, grad in enumerate(grads)]
        found = self._cls.backward(self, *grads)
        return self._checked(tuple(found) if isinstance(found, tuple | list) else (found,))

    def _taken(self, grads: list[Tensor | None]) -> list[Tensor | None]:
        """The gradients, and what was saved; nobody else has them, unless they are needed again."""
        taken = [*grads, *self.saved_tensors]
        grads.clear()
        if not self.kept:
            self.release()
        return taken

    def _zeros(self, output: int) -> Tensor | None:
        from torchemu.frontends.numpy._tensor.creation import zeros

        about = self.outputs[output]
        if about is None:
            return None
        return zeros(about.shape, dtype=about.dtype, device=about.device)

    def _checked(self, found: tuple[Any, ...]) -> Sequence[Any]:
        want = len(self.edges)
        while len(found) > want and found[-1] is None:
            found = found[:-1]
        if len(found) != want:
            raise RuntimeError(
                f"function {self.name()} returned an incorrect number of gradients (expected {want}, got {len(found)})"
            )
        for at, (grad, of_tensor) in enumerate(zip(found, self._of_tensors, strict=True)):
            if grad is not None and not of_tensor:
                raise RuntimeError(
                    f"function {self.name()} returned a gradient different than None at position {at + 1}, but the "
                    "corresponding forward input was not a Variable"
                )
        return found

    def release(self) -> None:
        """Lets go what save_for_backward kept."""
        for saved in self._saved:
            if saved is not None:
                saved.release()


def _among(t: Any, others: Sequence[Any]) -> bool:
    return any(t is other for other in others)


class Function:
    """Derive from it, and write as static methods ``forward(ctx, *args)`` and ``backward(ctx, *grads)``. Then call
    ``apply(*args)``.

    backward is given the gradients of what forward returned, and returns one for each argument of forward: None for
    those that have none.
    """

    @staticmethod
    def forward(*args: Any, **kwargs: Any) -> Any:
        """Calculates."""
        raise NotImplementedError("You must implement the forward function for custom autograd.Function.")

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Any) -> Any:
        """The gradients of forward's arguments, from those of what it returned."""
        raise NotImplementedError(
            "You must implement either the backward or vjp method for your custom autograd.Function to use it with "
            "backward mode AD."
        )

    @classmethod
    def apply(cls, *args: Any, **kwargs: Any) -> Any:
        """Calls forward and records the call."""
        if kwargs:
            raise TypeError("apply() takes no keyword arguments")
        recorded = _settings.current().gradients and any(isinstance(t, Tensor) and wants_grad(t) for t in args)
        ctx = _class_of(cls)(cls, args, recorded)
        output = _forward(cls, ctx, args)
        if not isinstance(output, tuple):
            return ctx.returned((output,), args)[0]
        return ctx.returned(output, args)

    takes_all = False  # backward is given a list of gradients and saved tensors, of which it can let go one by one
    _backward_cls: type[BackwardFunction]


def _class_of(cls: type[Function]) -> type[BackwardFunction]:
    """The class of the Function's recorded calls, which has only its name of its own."""
    if "_backward_cls" not in vars(cls):
        cls._backward_cls = type(f"{cls.__name__}Backward", (BackwardFunction,), {"__module__": cls.__module__})
    return cls._backward_cls


def _forward(cls: type[Function], ctx: BackwardFunction, args: tuple[Any, ...]) -> Any:
    """forward's result, calculated without recording."""
    settings = _settings.current()
    before, settings.gradients = settings.gradients, False
    try:
        return cls.forward(ctx, *args)
    finally:
        settings.gradients = before
