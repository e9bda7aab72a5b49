"""Gradients that nobody has computed: PyTorch makes zeros of them before a Function's backward is called.

C++ makes them on what it takes for the devices of the Function's results, which is the host. Where the backward pass
last was is mostly right; where results are on several devices, or on a device and the host, it is not.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.autograd.function import BackwardCFunction, Function

from torchemu.frontends.torch.device import places
from torchemu.frontends.torch.device.device_copies import to
from torchemu.frontends.torch.device.patches import Replacements
from torchemu.frontends.torch.device.places import HOST, Place

_PLACES = "_torchemu_places"


def put(replaced: Replacements) -> None:
    """Puts them on the devices of the results."""
    replaced.put(Function, "apply", classmethod(_noting(vars(Function)["apply"])))
    replaced.put(BackwardCFunction, "apply", _placing(BackwardCFunction.apply))


def _noting(apply: Any) -> Callable[..., Any]:
    """Makes Function.apply of PyTorch's, a class method in Python or C: it notes where the results are."""

    def call(cls: type[Function], *args: Any, **kwargs: Any) -> Any:
        results = apply.__get__(None, cls)(*args, **kwargs)
        if type(results) is tuple:
            _note(results)
        return results

    return call


def _note(results: tuple[Any, ...]) -> None:
    """Notes in the node that made them where results are."""
    nodes = (result.grad_fn for result in results if isinstance(result, torch.Tensor))
    node = next((node for node in nodes if isinstance(node, BackwardCFunction)), None)
    if node is not None:
        setattr(node, _PLACES, [places.of(r) if isinstance(r, torch.Tensor) else None for r in results])


def _placing(apply: Callable[..., Any]) -> Callable[..., Any]:
    """Makes a node's apply of PyTorch's: it puts each gradient where the result is."""

    def call(self: Any, *grads: Any) -> Any:
        where = vars(self).get(_PLACES)
        if where is not None:
            grads = tuple(map(_placed, grads, where))
        return apply(self, *grads)

    return call


def _placed(grad: Any, where: Place | None) -> Any:
    if not isinstance(grad, torch.Tensor) or places.of(grad) is where:
        return grad
    return to(grad, HOST if where is None else where.device)
