"""Calls of operations, recorded."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from torchemu.frontends.numpy._autograd.derivative import LATER, RESULT, Derivative
from torchemu.frontends.numpy._autograd.node import Node, outputs_of
from torchemu.frontends.numpy._autograd.saved import Saved
from torchemu.frontends.numpy._autograd.variable import Edge, Metadata
from torchemu.frontends.numpy._tensor.core import Tensor

if TYPE_CHECKING:
    from torchemu.frontends.numpy._tensor.dispatch import Op


class Call(Node):
    """A call of an operation. Formulas of derivatives see it so:

    ``call[i]`` is operand i, if the formula has said that it looks at it, or it is no tensor; ``call.result`` or
    ``call.results`` what was returned.

    Attributes:
        op: the operation.
        params: what it was called with besides operands.
        needs: for each operand whether its gradient is needed.
        operands: for each operand that is a tensor its shape, dtype and device.
    """

    def __init__(self, op: Op, edges: Sequence[Edge | None], operands: Sequence[Any], params: Sequence[Any]) -> None:
        super().__init__(edges, ())
        self.op, self.params = op, params
        self.needs = [edge is not None for edge in edges]
        derivative = op.derivative
        self._uses = frozenset() if derivative is None else derivative.uses(self.needs)
        self.operands: list[Metadata | None] = []
        self._kept: list[Any] = []
        for i, t in enumerate(operands):
            of_tensor = isinstance(t, Tensor)
            self.operands.append(Metadata(t._shape, t.dtype, t.device) if of_tensor else None)
            self._kept.append((Saved(t) if i in self._uses else None) if of_tensor else t)
        self._results: list[Saved | None] = []

    def returned(self, results: Sequence[Tensor]) -> None:
        """Says what the call has returned."""
        self.outputs = outputs_of(results)
        if RESULT in self._uses:
            self._results = [Saved(t, i) for i, t in enumerate(results)]
        elif LATER in self._uses:
            self._results = [None, *[Saved(t, i) for i, t in enumerate(results[1:], 1)]]

    def __getitem__(self, operand: int) -> Any:
        kept = self._kept[operand]
        return kept.unpack(self) if isinstance(kept, Saved) else kept

    @property
    def results(self) -> list[Any]:
        """Returns what the call returned; None in the place of what the formula has not said that it looks at."""
        return [None if saved is None else saved.unpack(self) for saved in self._results]

    @property
    def result(self) -> Tensor:
        """Returns what the call returned, if that is one tensor."""
        found: Tensor = self.results[0]
        return found

    def shape(self, operand: int) -> tuple[int, ...]:
        """Returns that of an operand; a number has none."""
        about = self.operands[operand]
        return () if about is None else about.shape

    def about(self, operand: int) -> Metadata:
        """The shape, dtype and device of an operand that is a tensor."""
        about = self.operands[operand]
        assert about is not None
        return about

    def apply(self, grads: list[Tensor | None]) -> Sequence[Any]:
        """Calculates the gradients of the operands.

        Raises:
            NotImplementedError: nobody has said what the operation's derivative is.
        """
        derivative: Derivative | None = self.op.derivative
        if derivative is None:
            raise NotImplementedError(f"derivative for {self.op.name} is not implemented")
        for grad in grads:
            if grad is not None:
                return self._gradients(derivative, grads)
        return [None] * len(self.edges)

    def _gradients(self, derivative: Derivative, grads: list[Tensor | None]) -> Sequence[Any]:
        return derivative.gradients(self, grads)

    def release(self) -> None:
        """Lets go the operands and results."""
        for kept in (*self._kept, *self._results):
            if isinstance(kept, Saved):
                kept.release()


@functools.cache
def call_of(op: Op) -> type[Call]:
    """The class of an operation's calls, which has only its name of its own: that which PyTorch's nodes have."""
    name = "".join(part.capitalize() for part in op.name.split("_"))
    return type(f"{name}Backward0", (Call,), {"__module__": __name__})
