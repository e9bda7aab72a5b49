"""Registries of PyTorch's that refuse a name which they have: each rank registers its own, as a process does.

These are decompositions of operations, rules of operations for dispatch modes, compilers, and methods of data pipes.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from torch import _decomp
from torch._library.simple_registry import GenericTorchDispatchRuleHolder
from torch._library.utils import RegistrationHandle
from torch.utils.data import IterDataPipe, MapDataPipe

from torchemu.frontends.torch.session import Session
from torchemu.frontends.torch.tables import OfRanks

_LATER = {"torch._dynamo.backends.registry": "_COMPILER_FNS", "torch._inductor.decomposition": "decompositions"}
"""Modules that are loaded when a program wants them, and their tables: names of compilers for torch.compile, and what
its compiler decomposes."""


def install(run: Session) -> None:
    """Lets each rank register what another one has registered, until the run ends."""
    _separate_decompositions(run)
    _separate_rules(run)
    for pipe in (IterDataPipe, MapDataPipe):
        run.replace(pipe, "functions", OfRanks(pipe.functions, for_all=False))
    for name, table in _LATER.items():
        run.on_load[name] = functools.partial(_separate_table, run, table)


def _separate_decompositions(run: Session) -> None:
    """Gives each rank its own decompositions, in PyTorch's table of tables and under the names of these."""
    tables = _decomp.global_decomposition_table
    run.stack.callback(tables.update, dict(tables))
    for kind, table in list(tables.items()):
        tables[kind] = OfRanks(table, for_all=False)
        for name in [name for name, value in vars(_decomp).items() if value is table]:
            run.replace(_decomp, name, tables[kind])


def _separate_rules(run: Session) -> None:
    """Gives each rank its own rules of an operation for classes of dispatch modes and of tensors."""
    original: Callable[..., Any] = GenericTorchDispatchRuleHolder.register

    @functools.wraps(original)
    def register(holder: Any, torch_dispatch_class: type, func: Callable[..., Any]) -> RegistrationHandle:
        if not isinstance(holder._data, OfRanks):
            run.replace(holder, "_data", OfRanks(holder._data, for_all=False))
        original(holder, torch_dispatch_class, func)
        own = holder._data.own()  # another rank may end the library that has it
        return RegistrationHandle(lambda: own.pop(torch_dispatch_class, None))

    run.replace(GenericTorchDispatchRuleHolder, "register", register)


def _separate_table(run: Session, name: str, module: Any) -> None:
    """Gives each rank its own entries in a table of a module."""
    run.replace(module, name, OfRanks(getattr(module, name), for_all=False))
