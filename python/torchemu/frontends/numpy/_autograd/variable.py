"""A tensor's part in differentiation: its gradient, whether it is wanted, and the function that made the tensor."""

from __future__ import annotations

import weakref
from collections import OrderedDict
from typing import TYPE_CHECKING, Any, NamedTuple

from torchemu import dtypes
from torchemu.frontends.numpy._device import device
from torchemu.frontends.numpy._tensor.core import Tensor

if TYPE_CHECKING:
    from torchemu.frontends.numpy._autograd.node import AccumulateGrad, Node

Hooks = OrderedDict[int, Any]


class Edge(NamedTuple):
    """The target of a gradient: an output of a recorded function."""

    node: Node
    output: int


class Metadata(NamedTuple):
    """The shape, dtype and device that the gradient of a tensor must have."""

    shape: tuple[int, ...]
    dtype: dtypes.dtype
    device: device


class Versions:
    """Counts the writes into a tensor that shares its memory, but not their number, with others."""

    __slots__ = ("version",)

    def __init__(self, version: int) -> None:
        self.version = version


class AutogradMeta:
    """A tensor's.

    Attributes:
        requires_grad: whether its gradient is wanted, or needed for others.
        grad: the gradient that backward passes have added up.
        node, output: the recorded function that it is an output of, and which; None for leaves.
        version: of a view: the version of its memory that node belongs to.
        hooks: of a leaf: what is called with its gradient.
        accumulated: of a leaf: what is called after its gradient has been added up.
        retains: of what is no leaf: whether backward passes leave its gradient here.
        origin: of a view: why an operation may not write into it, "" if it may.
        accumulator: of a leaf: a reference to the node that adds up its gradient, while there is one.
    """

    __slots__ = (
        "accumulated",
        "accumulator",
        "grad",
        "hooks",
        "node",
        "origin",
        "output",
        "requires_grad",
        "retains",
        "version",
    )

    def __init__(self, requires_grad: bool = False, node: Node | None = None, output: int = 0) -> None:
        self.requires_grad, self.node, self.output = requires_grad, node, output
        self.grad: Tensor | None = None
        self.hooks: Hooks | None = None
        self.accumulated: Hooks | None = None
        self.retains = False
        self.version = 0
        self.origin = ""
        self.accumulator: weakref.ref[AccumulateGrad] | None = None


def metadata_of(t: Tensor) -> Metadata:
    """Returns what t's gradient has to look like."""
    return Metadata(t._shape, t.dtype, t.device)


def version_of(t: Tensor) -> int:
    """Returns how often its memory has been written."""
    return (t._versions or t._storage).version


def count_write(t: Tensor) -> None:
    """Says that its memory has been written."""
    (t._versions or t._storage).version += 1


def meta_of(t: Tensor) -> AutogradMeta:
    """The tensor's own; makes one if it has none."""
    meta = t._autograd
    if meta is None:
        meta = set_meta(t, AutogradMeta())
    return meta


def set_meta(t: Tensor, meta: AutogradMeta) -> AutogradMeta:
    """Gives it to the tensor."""
    t._storage.tracked = True
    t._autograd = meta
    return meta


def current_meta(t: Tensor) -> AutogradMeta | None:
    """The tensor's. A view of what an operation has written since gets the history that this gave it."""
    base = t._base
    if base is None or base._autograd is None or base._autograd.node is None:
        return t._autograd
    meta = t._autograd
    if meta is None or (meta.version != version_of(t) and (meta.node is not None or not meta.requires_grad)):
        from torchemu.frontends.numpy._autograd.views import rebuild

        rebuild(t, base)
    return t._autograd


def wants_grad(t: Tensor) -> bool:
    """Reports whether t.requires_grad."""
    meta = current_meta(t)
    return meta is not None and meta.requires_grad


def edge_of(t: Tensor) -> Edge | None:
    """Returns where t's gradient goes; None if t requires none."""
    meta = t._autograd if t._base is None else current_meta(t)
    if meta is None or not meta.requires_grad:
        return None
    return Edge(meta.node or accumulator_of(t), meta.output)


def accumulator_of(t: Tensor) -> AccumulateGrad:
    """The node that adds up a leaf's gradient. It lives as long as something refers to it."""
    from torchemu.frontends.numpy._autograd.node import AccumulateGrad

    meta = meta_of(t)
    node = meta.accumulator() if meta.accumulator is not None else None
    if node is None:
        node = AccumulateGrad(t)
        meta.accumulator = weakref.ref(node)
    return node
