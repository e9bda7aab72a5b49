"""The language's names, as ``triton.language.core``, and how kernels call functions of other languages."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from torchemu.frontends.triton import _externs
from torchemu.frontends.triton.face.language import *  # noqa: F403
from torchemu.frontends.triton.face.language import __getattr__ as __getattr__


def extern(function: Callable[..., Any]) -> Callable[..., Any]:
    """Returns the function: kernels call it as it is."""
    return function


def extern_elementwise(
    lib_name: Any,
    lib_path: Any,
    args: Sequence[Any],
    arg_type_symbol_dict: Mapping[Any, Any],
    is_pure: bool = False,
    _semantic: Any = None,
    _builder: Any = None,
) -> Any:
    """Calls a function by its symbol; see _externs.call."""
    return _externs.call(arg_type_symbol_dict, args)
