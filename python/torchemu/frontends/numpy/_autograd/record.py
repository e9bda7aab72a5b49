"""Recording: what ``_tensor.dispatch`` tells autograd about calls of operations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from torchemu.frontends.numpy import _settings
from torchemu.frontends.numpy._autograd.call import Call, call_of
from torchemu.frontends.numpy._autograd.node import Node
from torchemu.frontends.numpy._autograd.variable import (
    AutogradMeta,
    Edge,
    count_write,
    current_meta,
    edge_of,
    meta_of,
    set_meta,
    version_of,
    wants_grad,
)
from torchemu.frontends.numpy._autograd.views import CopySlices
from torchemu.frontends.numpy._tensor.core import Tensor

if TYPE_CHECKING:
    from torchemu.frontends.numpy._tensor.dispatch import Op


_WITHOUT_GRAD = (
    "A view was created in no_grad mode and is being modified inplace with grad mode enabled. Given that this use case "
    "is ambiguous and error-prone, it is forbidden. You can clarify your code by moving both the view and the inplace "
    "either both inside the no_grad block (if you don't want the inplace to be tracked) or both outside (if you want "
    "the inplace to be tracked)."
)
_ONE_OF_SEVERAL = (
    "Output {} of {} is a view and is being modified inplace. This view is the output of a function that returns "
    "multiple views. Such functions do not allow the output views to be modified inplace. You should replace the "
    "inplace operation by an out-of-place one."
)


def _edges(operands: Sequence[Any]) -> list[Edge | None]:
    return [edge_of(t) if isinstance(t, Tensor) and t.dtype.is_floating_point else None for t in operands]


def record(op: Op, results: tuple[Tensor, ...], operands: Sequence[Any], params: Sequence[Any]) -> None:
    """Makes the results, new tensors, those of a recorded call, if gradients are wanted of an operand."""
    if not _settings.current().gradients:
        return
    edges = _edges(operands)
    if edges.count(None) == len(edges):
        return
    if not any(t.dtype.is_floating_point for t in results):
        return
    call = call_of(op)(op, edges, operands, params)
    call.returned(results)
    for output, t in enumerate(results):
        if t.dtype.is_floating_point:
            set_meta(t, AutogradMeta(True, call, output))


def record_view(op: Op, view: Tensor, base: Tensor, params: Sequence[Any]) -> None:
    """The same for a view."""
    if base._versions is not None:
        view._versions = base._versions
    if not wants_grad(base):
        return
    record(op, (view,), (base,), params)
    meta = meta_of(view)
    meta.version = version_of(view)
    if not _settings.current().gradients:
        meta.origin = _WITHOUT_GRAD


def record_views(name: str, views: Sequence[Tensor]) -> None:
    """Says that views were made together, by a function with this name as a node: nothing may write into them."""
    for i, view in enumerate(views):
        if view._autograd is not None and not view._autograd.origin:
            view._autograd.origin = _ONE_OF_SEVERAL.format(i, name)


# -- writes


def before_write(op: Op, target: Tensor, operands: Sequence[Any], params: Sequence[Any]) -> Call | None:
    """Returns what after_write is to be told about a write into a tensor, which is its own first operand.

    Raises:
        RuntimeError: the tensor is one that operations may not write into.
    """
    if not _settings.current().gradients or not target.dtype.is_floating_point:
        return None
    check_write(target)
    edges = _edges(operands)
    if not any(edges):
        return None
    if op.derivative is not None and 0 in op.derivative.uses([edge is not None for edge in edges]):
        operands = (target.detach().clone(), *operands[1:])
    return call_of(op)(op, edges, operands, params)


def check_write(target: Tensor) -> None:
    """Raises:
    RuntimeError: gradients are wanted of the tensor, and it is a leaf, or a view that operations may not write into.
    """
    meta, base = current_meta(target), target._base
    if not _settings.current().gradients or meta is None:
        return
    if base is not None and meta.origin:
        raise RuntimeError(meta.origin)
    if not meta.requires_grad:
        return
    if base is not None and base._autograd is not None and base._autograd.requires_grad and base._autograd.node is None:
        raise RuntimeError("a view of a leaf Variable that requires grad is being used in an in-place operation.")
    if meta.node is None:
        raise RuntimeError("a leaf Variable that requires grad is being used in an in-place operation.")


def after_write(target: Tensor, call: Call | None) -> None:
    """Says that a tensor has been written, by this call if it is recorded."""
    if call is None:
        count_write(target)
        return
    rewrite(target, call)
    call.returned((target,))


def rewrite(target: Tensor, node: Node) -> None:
    """Makes a written tensor the first output of a node; of its base, too, if it is a view."""
    base = target._base
    if base is not None and target.dtype is not base.dtype:
        raise NotImplementedError(
            f"writing into a view of {target.dtype!r} of a tensor of {base.dtype!r} that requires a gradient"
        )
    before = edge_of(base) if base is not None else None
    count_write(target)
    if base is None:
        _set_history(target, node)
    else:
        _set_history(base, CopySlices(node, target, base, before))


def _set_history(t: Tensor, node: Node) -> None:
    meta = meta_of(t)
    if meta.retains and meta.node is not None:
        meta.node.forget(meta.output)
        node.retain(0, t)
    meta.requires_grad, meta.node, meta.output = True, node, 0
    meta.version = version_of(t)


def refuse_out(op: Op, operands: Sequence[Any]) -> None:
    """Raises:
    RuntimeError: gradients are wanted of an operand of a call with out=.
    """
    if _settings.current().gradients and any(isinstance(t, Tensor) and wants_grad(t) for t in operands):
        raise RuntimeError(
            f"{op.name}(): functions with out=... arguments don't support automatic differentiation, but one of the "
            "arguments requires grad."
        )
