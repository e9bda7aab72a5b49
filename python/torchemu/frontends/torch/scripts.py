"""torch.jit: modules that programs script or trace are PyTorch's own, and functions run as they are.

A script runs in C++, where a simulated device is the host: its constants say "cpu", and so does ``x.device``. What a
script's module makes there is where the module is called.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch.jit import _builtins, _serialization
from torch.utils._python_dispatch import TorchDispatchMode, _pop_mode_temporarily

from torchemu.frontends.torch.device import places
from torchemu.frontends.torch.session import Session


def install(run: Session) -> None:
    """Lets scripts know the simulated devices, until the run ends."""
    run.replace(_builtins, "_builtin_table", {**_named_operations(), **_builtins._get_builtin_table()})
    run.replace(torch.jit, "script", _scripting(torch.jit.script))
    for name in ("trace", "trace_module"):
        run.replace(torch.jit, name, _tracing(getattr(torch.jit, name)))
    run.replace(torch.jit, "load", _loading(torch.jit.load))
    run.replace(torch.jit.ScriptModule, "__call__", _called)


def _named_operations() -> dict[int, str]:
    """Lists the operations that functions of PyTorch's modules are to a script, by the functions' identities: a run has
    put its own in the place of some."""
    functions = [item for module in _builtins._modules_containing_builtins for item in vars(module).items()]
    return {id(function): f"aten::{name}" for name, function in functions if inspect.isfunction(function)}


def _scripting(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def script(obj: Any, *args: Any, **kwargs: Any) -> Any:
        is_of_another = kwargs.get("_rcb") is not None  # PyTorch itself asks, for what a module calls
        is_own = getattr(obj, "__module__", "").startswith("torch._decomp")  # or for derivatives forwards
        return original(obj, *args, **kwargs) if is_of_another or is_own or isinstance(obj, torch.nn.Module) else obj

    return script


def _tracing(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def trace(*args: Any, **kwargs: Any) -> Any:
        with _Untraced():
            return original(*args, **kwargs)

    return trace


class _Untraced(TorchDispatchMode):
    """A dispatch mode below which nothing is traced: the operation itself has been, and what does it reads shapes."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        with _no_tracing(), _pop_mode_temporarily() as below:  # a call of func would take no numbers for tensors
            return below.__torch_dispatch__(func, types, args, kwargs)

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """Says that the mode is none that a compiler sees: PyTorch would wrap each call."""
        return False


_TRACER = torch._C._dispatch_key_parse("Tracer")


@contextlib.contextmanager
def _no_tracing() -> Iterator[None]:
    """Stops tracing for a with block."""
    state = torch._C._get_tracing_state()
    _set_tracing(None)
    try:
        yield
    finally:
        _set_tracing(state)


def _set_tracing(state: Any) -> None:
    """Sets what is traced into, also within an operation that has been traced: PyTorch refuses that by itself."""
    excluded = torch._C._dispatch_tls_is_dispatch_key_excluded(_TRACER)
    torch._C._dispatch_tls_set_dispatch_key_excluded(_TRACER, False)
    torch._C._set_tracing_state(state)
    torch._C._dispatch_tls_set_dispatch_key_excluded(_TRACER, excluded)


def _loading(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def load(f: Any, map_location: Any = None, *args: Any, **kwargs: Any) -> Any:
        to = _serialization.validate_map_location(map_location)
        if to is None or not places.is_simulated(to):
            return original(f, map_location, *args, **kwargs)
        return original(f, places.HOST, *args, **kwargs).to(to)

    return load


def _called(module: torch.nn.Module, *args: Any, **kwargs: Any) -> Any:
    """Calls a script's module. Tensors that it makes are where its parameters are, or what it is called with."""
    tensors = [*module.parameters(), *(t for t in (*args, *kwargs.values()) if isinstance(t, torch.Tensor))]
    with places.made_at(places.of(tensors[0]) if tensors else None):
        return torch.nn.Module.__call__(module, *args, **kwargs)
