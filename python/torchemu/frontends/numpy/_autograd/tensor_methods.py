"""The methods and attributes of Tensor that are about gradients."""

from __future__ import annotations

import warnings
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from torchemu.frontends.numpy._autograd import api
from torchemu.frontends.numpy._autograd.node import Node
from torchemu.frontends.numpy._autograd.variable import current_meta, edge_of, meta_of, version_of, wants_grad
from torchemu.frontends.numpy._tensor.conversion import check_differentiable
from torchemu.frontends.numpy._tensor.core import Tensor
from torchemu.frontends.numpy.utils.hooks import RemovableHandle, registered

_NOT_A_LEAF = (
    "The .grad attribute of a Tensor that is not a leaf Tensor is being accessed. Its .grad attribute won't be "
    "populated during autograd.backward(). If you indeed want the .grad field to be populated for a non-leaf Tensor, "
    "use .retain_grad() on the non-leaf Tensor. If you access the non-leaf Tensor by mistake, make sure you access the "
    "leaf Tensor instead."
)


def set_requires_grad(self: Tensor, wanted: bool) -> None:
    """``self.requires_grad = wanted``.

    Raises:
        RuntimeError: the tensor is no leaf, or not of floats.
    """
    if not is_leaf(self):
        text = "you can only change requires_grad flags of leaf variables."
        if not wanted:
            text += (
                " If you want to use a computed variable in a subgraph that doesn't require differentiation use "
                "var_no_grad = var.detach()."
            )
        raise RuntimeError(text)
    if wanted:
        check_differentiable(self.dtype)
        self._base = None  # a leaf of its own, even if in the memory of another tensor
    if wanted or self._autograd is not None:
        meta_of(self).requires_grad = bool(wanted)


def requires_grad_(self: Tensor, requires_grad: bool = True) -> Tensor:
    """Says whether the tensor's gradient is wanted.

    Raises:
        RuntimeError: it is not of floats; or it is no leaf, and requires one.
    """
    if requires_grad:
        check_differentiable(self.dtype)
    if not requires_grad or is_leaf(self):
        set_requires_grad(self, requires_grad)
    return self


def is_leaf(self: Tensor) -> bool:
    """Reports whether it was not made by a recorded operation."""
    return grad_fn(self) is None


def grad_fn(self: Tensor) -> Node | None:
    """The recorded function that made it; None for a leaf."""
    meta = current_meta(self)
    return None if meta is None else meta.node


def output_nr(self: Tensor) -> int:
    """Returns which result of its grad_fn it is."""
    meta = current_meta(self)
    return 0 if meta is None else meta.output


def get_grad(self: Tensor) -> Tensor | None:
    """``self.grad``: what backward passes have added up."""
    meta = self._autograd
    if meta is None:
        return None
    if meta.grad is None and meta.node is not None and not meta.retains:
        warnings.warn(_NOT_A_LEAF, UserWarning, stacklevel=2)
    return meta.grad


def set_grad(self: Tensor, grad: Any) -> None:
    """``self.grad = grad``.

    Raises:
        TypeError: it is neither a tensor nor None. RuntimeError: it is not like the tensor, or is the tensor itself.
    """
    if grad is None:
        if self._autograd is not None:
            self._autograd.grad = None
        return
    if not isinstance(grad, Tensor):
        raise TypeError(f"assigned grad expected to be a Tensor or None but got grad of type {type(grad).__name__}")
    _check_grad(self, grad)
    meta_of(self).grad = grad


def _check_grad(t: Tensor, grad: Tensor) -> None:
    if grad is t:
        raise RuntimeError("can't assign Variable as its own grad")
    if grad.dtype is not t.dtype:
        raise RuntimeError(
            f"attempting to assign a gradient with dtype '{grad.dtype.title.lower()}' to a tensor with grad_dtype "
            f"'{t.dtype.title}'. The gradient must match the tensor's grad_dtype (defaults to the tensor's dtype)."
        )
    if grad.device != t.device:
        raise RuntimeError(
            f"attempting to assign a gradient with device type '{grad.device}' to a tensor with device type "
            f"'{t.device}'. Please ensure that the gradient and the tensor are on the same device"
        )
    if grad._shape != t._shape:
        raise RuntimeError(
            f"attempting to assign a gradient of size '{list(grad._shape)}' to a tensor of size '{list(t._shape)}'. "
            "Please ensure that the gradient and the tensor are the same size"
        )


def delete_grad(self: Tensor) -> None:
    """``del self.grad``."""
    set_grad(self, None)


def backward(
    self: Tensor,
    gradient: Tensor | None = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    inputs: Any = None,
) -> None:
    """torch.autograd.backward of this tensor."""
    api.backward(self, gradient, retain_graph, create_graph, inputs=inputs)


def detach_(self: Tensor) -> Tensor:
    """Makes the tensor a leaf that requires no gradient.

    Raises:
        RuntimeError: it is a view.
    """
    if self._base is not None:
        raise RuntimeError(
            "Can't detach views in-place. Use detach() instead. If you are using DistributedDataParallel (DDP) for "
            "training, and gradient_as_bucket_view is set as True, gradients are views of DDP buckets, and hence "
            "detach_() cannot be called on these gradients. To fix this error, please refer to the "
            "Optimizer.zero_grad() function in torch/optim/optimizer.py as the solution."
        )
    if self._autograd is not None:
        self._autograd.node, self._autograd.requires_grad = None, False
    return self


# -- hooks


def _check_hookable(t: Tensor) -> None:
    if not wants_grad(t):
        raise RuntimeError("cannot register a hook on a tensor that doesn't require gradient")


def register_hook(self: Tensor, hook: Callable[..., Any]) -> RemovableHandle:
    """Calls ``hook(grad)`` whenever the gradient has been found; what it returns, unless None, takes its place.

    Raises:
        RuntimeError: the tensor requires no gradient.
    """
    _check_hookable(self)
    meta, edge = meta_of(self), edge_of(self)
    if meta.node is not None and edge is not None:
        return registered(edge.node.hooks_of_output(edge.output), hook)
    if meta.hooks is None:
        meta.hooks = OrderedDict()
    return registered(meta.hooks, hook)


def register_post_accumulate_grad_hook(self: Tensor, hook: Callable[..., Any]) -> RemovableHandle:
    """Calls ``hook(tensor)`` whenever a gradient has been added to a leaf's grad.

    Raises:
        RuntimeError: the tensor is no leaf, or requires no gradient.
    """
    _check_hookable(self)
    meta = meta_of(self)
    if meta.node is not None:
        raise RuntimeError("post accumulate grad hooks cannot be registered on non-leaf tensors")
    if meta.accumulated is None:
        meta.accumulated = OrderedDict()
    return registered(meta.accumulated, hook)


METHODS: dict[str, Any] = {
    "_is_view": lambda self: self._base is not None,
    "_version": property(version_of, doc="How often its memory has been written."),
    "backward": backward,
    "detach_": detach_,
    "grad": property(get_grad, set_grad, delete_grad, doc="The gradient that backward passes have added up."),
    "grad_fn": property(grad_fn, doc="The recorded function that made it; None for a leaf."),
    "is_leaf": property(is_leaf, doc="Whether it was not made by a recorded operation."),
    "output_nr": property(output_nr, doc="Which result of its grad_fn it is."),
    "register_hook": register_hook,
    "register_post_accumulate_grad_hook": register_post_accumulate_grad_hook,
    "requires_grad": property(wants_grad, set_requires_grad, doc="Whether its gradient is wanted."),
    "requires_grad_": requires_grad_,
    "retain_grad": api.retain_grad,
    "retains_grad": property(
        lambda self: self._autograd is not None and self._autograd.retains,
        doc="Whether backward passes leave its gradient in grad though it is no leaf.",
    ),
}
"""By their names; _tensor.methods makes methods of them."""
