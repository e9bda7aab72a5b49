"""Modules of PyTorch that are here in name only: they can be imported, and what is used of them says so.

The NumPy front end has what benches, kernels and Megatron's layers need; programs that need more run on the installed
PyTorch (``torchemu run --torch real``).
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

from torchemu.unsupported import unsupported_attributes, unsupported_names

_PACKAGE = "torchemu.frontends.numpy."


@dataclass(frozen=True)
class Absent:
    """A module that is not supported.

    Attributes:
        instead: what to use, or why there is nothing.
        names: those that can be imported from it, separated by spaces; empty for all.
        asked: functions by which programs ask whether it is there: they answer no.
    """

    instead: str
    names: str = ""
    asked: tuple[str, ...] = ()


_RPC = "it belongs to RPC; use send and recv"
_DTENSOR = (
    "run it with torchemu run --torch real; or keep each rank's part in a tensor of its own; torchemu.tp has "
    "Megatron's layers"
)
_LIBRARY = "a library that is not used here"

_ABSENT = {
    "backends.mkl": Absent(_LIBRARY, asked=("is_available",)),
    "backends.mkldnn": Absent(_LIBRARY, asked=("is_available",)),
    "backends.mps": Absent(_LIBRARY, asked=("is_available", "is_built")),
    "backends.openmp": Absent(_LIBRARY, asked=("is_available",)),
    "distributed.autograd": Absent(_RPC, asked=("is_available",)),
    "distributed.config": Absent("there is nothing that these settings could change"),
    "distributed.remote_device": Absent(_RPC),
    "distributed.rpc": Absent(
        "ranks talk by collectives, send and recv, stores, or queues of torch.multiprocessing", asked=("is_available",)
    ),
    "distributed.tensor": Absent(
        _DTENSOR,
        "DTensor Partial Placement Replicate Shard distribute_module distribute_tensor empty full ones rand randn "
        "zeros",
    ),
    "distributed.tensor.parallel": Absent(
        _DTENSOR,
        "ColwiseParallel ParallelStyle PrepareModuleInput PrepareModuleInputOutput PrepareModuleOutput RowwiseParallel "
        "SequenceParallel loss_parallel parallelize_module",
    ),
    "distributed.utils": Absent("it holds PyTorch's own helpers; write what you need"),
}


def modules_below(package: str) -> dict[str, ModuleType]:
    """Makes the absent modules of a package importable, and returns those that are directly in it, by name."""
    inside = package.removeprefix(_PACKAGE) + "."
    made = {name: _make(name, absent) for name, absent in _ABSENT.items() if name.startswith(inside)}
    for name, module in made.items():
        parent, _, own = name.rpartition(".")
        if parent in made:
            setattr(made[parent], own, module)
    return {name.removeprefix(inside): module for name, module in made.items() if name.count(".") == inside.count(".")}


def _make(name: str, absent: Absent) -> ModuleType:
    module = ModuleType(_PACKAGE + name, f"torch.{name}, which is not supported: {absent.instead}.")
    module.__spec__ = ModuleSpec(module.__name__, None, is_package=True)
    module.__path__ = []
    vars(module).update(dict.fromkeys(absent.asked, _no), __getattr__=_attributes(f"torch.{name}", absent))
    sys.modules[module.__name__] = module
    return module


def _attributes(name: str, absent: Absent) -> Callable[[str], Any]:
    if absent.names:
        return unsupported_names(name, absent.names, absent.instead)
    return unsupported_attributes(name, absent.instead)


def _no() -> bool:
    """False."""
    return False
