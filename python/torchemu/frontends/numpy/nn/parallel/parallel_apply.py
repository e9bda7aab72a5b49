"""torch.nn.parallel.parallel_apply: modules called on several devices of a rank."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torchemu.frontends.numpy import cuda
from torchemu.frontends.numpy._tensor.core import Tensor
from torchemu.frontends.numpy.nn.modules.module import Module

__all__ = ["get_a_var", "parallel_apply"]


def get_a_var(obj: Any) -> Tensor | None:
    """The first tensor in it; None without one."""
    if isinstance(obj, Tensor):
        return obj
    if isinstance(obj, dict):
        obj = obj.items()
    if isinstance(obj, list | tuple | type({}.items())):
        return next((found for found in map(get_a_var, obj) if found is not None), None)
    return None


def parallel_apply(
    modules: Sequence[Module],
    inputs: Sequence[Any],
    kwargs_tup: Sequence[dict[str, Any]] | None = None,
    devices: Sequence[Any] | None = None,
) -> list[Any]:
    """Calls each module with its inputs, on its device. The host issues one after the other; devices overlap.

    Args:
        modules, inputs: as many of one as of the other; what is no tuple or list is the only argument.
        kwargs_tup: keyword arguments for each.
        devices: where; None: where the inputs are.

    Raises:
        AssertionError: they are not as many. RuntimeError: no device is said, and no tensor is given.
    """
    if len(modules) != len(inputs):
        raise AssertionError(f"The number of modules {len(modules)} is not equal to the number of inputs {len(inputs)}")
    named = kwargs_tup or [{}] * len(modules)
    places = devices or [None] * len(modules)
    if len(modules) != len(named) or len(modules) != len(places):
        raise AssertionError("modules, kwargs_tup and devices must be of one length")
    calls = zip(modules, inputs, named, places, strict=True)
    return [_called(number, *call) for number, call in enumerate(calls)]


def _called(number: int, module: Module, inputs: Any, kwargs: dict[str, Any], place: Any) -> Any:
    if place is None:
        found = get_a_var(inputs)
        if found is None:
            raise RuntimeError(
                f"in replica {number}, no device was provided and no tensor input was found; device cannot be resolved"
            )
        place = found.device
    args = inputs if isinstance(inputs, tuple | list) else (inputs,)
    with cuda.device(place):
        return module(*args, **kwargs)
