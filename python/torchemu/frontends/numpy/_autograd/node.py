"""Nodes of the graph that backward passes follow: each is a recorded function."""

from __future__ import annotations

import sys
import weakref
from collections import OrderedDict
from collections.abc import Sequence
from typing import Any

from torchemu.frontends.numpy import _streams
from torchemu.frontends.numpy._autograd import state
from torchemu.frontends.numpy._autograd.variable import Edge, Hooks, Metadata, meta_of, metadata_of
from torchemu.frontends.numpy._tensor.core import Tensor


class Node:
    """A recorded function: where the gradients of its operands go, and what those of its results look like.

    Attributes:
        edges: for each operand where its gradient goes, None: nowhere.
        outputs: for each result what its gradient looks like; None where that is no tensor.
        number: nodes with higher numbers are recorded later, and come first in a backward pass.
        stream: where its gradients are calculated: as the function was.
        hooked: whether there may be hooks.
        kept: whether what it keeps for apply is needed again.
    """

    def __init__(self, edges: Sequence[Edge | None], outputs: Sequence[Metadata | None]) -> None:
        own = state.current()
        own.recorded += 1
        self.edges, self.outputs = edges, outputs
        self.number: float = own.recorded
        self.stream = _streams.current()

    hooked, kept = False, True
    _output_hooks: dict[int, Hooks] | None = None
    _retaining: dict[int, weakref.ref[Tensor]] | None = None

    def name(self) -> str:
        """Returns what messages call it."""
        return type(self).__name__

    def __repr__(self) -> str:
        return f"<{type(self).__name__} object at {id(self):#x}>"

    @property
    def next_functions(self) -> tuple[tuple[Node | None, int], ...]:
        """The nodes that it hands gradients to, each with the number of the output that they are of."""
        return tuple([(None, 0) if edge is None else (edge.node, edge.output) for edge in self.edges])

    # -- in a backward pass

    def apply(self, grads: list[Tensor | None]) -> Sequence[Any]:
        """From the gradients of its results, None being zeros, those of its operands."""
        raise NotImplementedError

    def release(self) -> None:
        """Lets go what it keeps for apply."""

    # -- hooks

    def hooks_of_output(self, output: int) -> Hooks:
        """The hooks of the tensor that is one of the results."""
        self.hooked = True
        if self._output_hooks is None:
            self._output_hooks = {}
        return self._output_hooks.setdefault(output, OrderedDict())

    def retain(self, output: int, t: Tensor) -> None:
        """Leaves the gradient of a result in that tensor's grad."""
        self.hooked = True
        if self._retaining is None:
            self._retaining = {}
        self._retaining[output] = weakref.ref(t)

    def forget(self, output: int) -> None:
        """Ends that: the tensor has become a result of another node."""
        if self._retaining is not None:
            self._retaining.pop(output, None)

    def before(self, grads: list[Tensor | None]) -> None:
        """Calls the hooks that come before apply; they change the list."""
        for output, hooks in (self._output_hooks or {}).items():
            grads[output] = hooked(hooks, grads[output])
        for output, target in (self._retaining or {}).items():
            tensor, grad = target(), grads[output]
            if tensor is not None and grad is not None:
                meta_of(tensor).grad = grad.clone()


def hooked(hooks: Hooks, grad: Tensor | None) -> Tensor | None:
    """A gradient after the hooks of its tensor.

    Raises:
        TypeError: a hook returned no tensor. RuntimeError: one of another shape.
    """
    for hook in list(hooks.values()):
        found = None if grad is None else hook(grad)
        if found is None or grad is None:
            continue
        name = getattr(hook, "__name__", type(hook).__name__)
        if not isinstance(found, Tensor):
            raise TypeError(f"expected Variable, but hook returned '{type(found).__name__}'")
        if found._shape != grad._shape:
            raise RuntimeError(f"hook '{name}' has changed the size of value")
        grad = found
    return grad


class AccumulateGrad(Node):
    """The end of the way: adds the gradient to the grad of a leaf.

    Attributes:
        variable: the leaf.
    """

    def __init__(self, variable: Tensor) -> None:
        super().__init__((), ())
        self.number = float("inf")  # as soon as the gradient is complete
        self.hooked = True  # the leaf may have some
        self.variable = variable

    def name(self) -> str:
        """With PyTorch's namespace."""
        return f"torch::autograd::{type(self).__name__}"

    def before(self, grads: list[Tensor | None]) -> None:
        """Calls the hooks of the leaf."""
        hooks = meta_of(self.variable).hooks
        if hooks:
            grads[0] = hooked(hooks, grads[0])
        super().before(grads)

    def apply(self, grads: list[Tensor | None]) -> Sequence[Any]:
        """Adds it. The first one is taken as it is, where nobody else has it."""
        if grads[0] is None:
            return ()
        meta = meta_of(self.variable)
        if meta.grad is None and _is_only_here(grads) and _same_layout(grads[0], self.variable):
            meta.grad = grads[0]
            meta.grad._base = None
        else:
            _accumulate(self.variable, grads[0])
        for hook in list((meta.accumulated or {}).values()):
            hook(self.variable)
        return ()


def _is_only_here(grads: list[Any]) -> bool:
    """Reports whether nobody else has the only gradient of the list, or its memory, and it need not be copied.

    PyTorch counts references too: which gradients are copied can be seen, by what they cost.
    """
    argument = 1  # getrefcount's own
    if sys.getrefcount(grads[0]) != 1 + argument:
        return False
    if grads[0]._base is None:
        return sys.getrefcount(grads[0]._storage) == 1 + argument
    return sys.getrefcount(grads[0]._base) == 1 + argument and sys.getrefcount(grads[0]._storage) == 2 + argument


def _same_layout(grad: Tensor, variable: Tensor) -> bool:
    return grad._steps() == variable._steps() or (grad.is_contiguous() and variable.is_contiguous())


def _accumulate(variable: Tensor, grad: Tensor) -> None:
    """Adds a gradient to a tensor's grad."""
    meta = meta_of(variable)
    if meta.grad is not None:
        meta.grad.add_(grad)
    elif variable.is_contiguous():
        meta.grad = grad.clone() if grad.is_contiguous() else grad.contiguous()
    else:
        meta.grad = grad.new_empty_strided(variable._shape, variable._steps()).copy_(grad)
        meta.grad._base = None


def outputs_of(results: Sequence[Tensor]) -> tuple[Metadata, ...]:
    """Returns what the gradients of results look like."""
    return tuple([metadata_of(t) for t in results])
