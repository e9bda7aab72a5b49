"""torch.ops: collectives on symmetric memory by the names of PyTorch's operators."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from torchemu.frontends.numpy.distributed._symmetric_memory import _ops as symmetric


class _Operator:
    """A function that has itself as its default overload."""

    def __init__(self, library: str, name: str, function: Callable[..., Any]) -> None:
        self._name, self._function = f"{library}.{name}", function
        self.__doc__ = function.__doc__

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._function(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<OpOverloadPacket(op='{self._name}')>"

    @property
    def default(self) -> _Operator:
        """Itself."""
        return self


def _library(name: str, functions: dict[str, Callable[..., Any]]) -> SimpleNamespace:
    return SimpleNamespace(**{function: _Operator(name, function, call) for function, call in functions.items()})


symm_mem = _library("symm_mem", symmetric.FUNCTIONS)
"""``torch.ops.symm_mem``; groups are given by name."""
