"""torch.nn.parallel.replicate: a module on several devices of a rank."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

from torchemu.frontends.numpy.nn.modules.module import Module

__all__ = ["replicate"]


def replicate(network: Module, devices: Sequence[Any], detach: bool = False) -> list[Any]:
    """Copies of a module, one on each device, whose gradients are added up in the module's own.

    Args:
        network: the module; it stays as it is.
        devices: where the copies are to be.
        detach: let no gradients get to the module.

    Raises:
        AssertionError: the module is in the host's memory.
    """
    if not all(p.is_cuda for p in network.parameters()):
        raise AssertionError("Broadcast function not implemented for CPU tensors")
    return [_replica(network, place, detach, {}) for place in devices]


def _replica(module: Module, place: Any, detach: bool, known: dict[int, Module]) -> Module:
    if id(module) in known:
        return known[id(module)]
    replica = known[id(module)] = copy.copy(module)
    state = vars(replica)
    for kind in ("_parameters", "_buffers", "_modules"):
        state[kind] = dict(state[kind])
    for name, p in module._parameters.items():
        if p is not None:  # a plain attribute: it is no leaf
            del state["_parameters"][name]
            state[name] = (p.detach() if detach else p).to(place)
    for name, buffer in module._buffers.items():
        state["_buffers"][name] = None if buffer is None else buffer.to(place)
    for name, child in module._modules.items():
        state["_modules"][name] = None if child is None else _replica(child, place, detach, known)
    return replica
