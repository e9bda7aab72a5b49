"""torch.jit: what programs say to the compiler, which there is not. Functions and modules run as they are."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any, Final, TypeVar

from torchemu.frontends.numpy.nn.modules.module import Module
from torchemu.unsupported import unsupported_function

__all__ = [
    "Final",
    "ScriptModule",
    "export",
    "freeze",
    "fuser",
    "ignore",
    "interface",
    "is_scripting",
    "is_tracing",
    "load",
    "optimize_for_inference",
    "optimized_execution",
    "save",
    "script",
    "script_if_tracing",
    "script_method",
    "set_fusion_strategy",
    "trace",
    "trace_module",
    "unused",
]

F = TypeVar("F")

ScriptModule = Module

load, save, trace_module = (
    unsupported_function(f"torch.jit.{name}", "there are no compiled programs; use torch.save of a state_dict")
    for name in ("load", "save", "trace_module")
)


def _itself(fn: F) -> F:
    """The function or class as it is."""
    return fn


export = interface = script_if_tracing = script_method = unused = _itself


def script(obj: F, optimize: Any = None, example_inputs: Any = None) -> F:
    """A function, class or module as it is."""
    return obj


def trace(func: F, example_inputs: Any = None, **options: Any) -> F:
    """A function or module as it is."""
    return func


def ignore(drop: Any = False, **kwargs: Any) -> Any:
    """A function as it is; or a decorator."""
    return drop if callable(drop) else _itself


def freeze(mod: Any, preserved_attrs: Any = None, optimize_numerics: bool = True) -> Any:
    """The module as it is.

    Raises:
        RuntimeError: it is in training.
    """
    if mod.training:
        raise RuntimeError(
            "Freezing is currently only implemented for modules in eval mode. Please call .eval() first."
        )
    return mod


def optimize_for_inference(mod: Any, other_methods: Any = None) -> Any:
    """The module as it is."""
    return mod


def is_scripting() -> bool:
    """False: nothing is compiled."""
    return False


def is_tracing() -> bool:
    """False: nothing is compiled."""
    return False


def set_fusion_strategy(strategy: Any) -> list[Any]:
    """Does nothing."""
    return []


def optimized_execution(should_optimize: bool) -> Any:
    """A context in which nothing is different."""
    return nullcontext()


def fuser(name: str) -> Any:
    """A context in which nothing is different."""
    return nullcontext()
