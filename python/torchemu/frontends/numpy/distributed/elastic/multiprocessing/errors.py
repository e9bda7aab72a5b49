"""torch.distributed.elastic.multiprocessing.errors: record, which torchrun's workers say of their failures with."""

from __future__ import annotations

from collections.abc import Callable
from typing import ParamSpec, TypeVar

__all__ = ["record"]

P = ParamSpec("P")
R = TypeVar("R")


def record(fn: Callable[P, R], error_handler: object = None) -> Callable[P, R]:
    """Returns the function: ``torchemu run`` has the exception itself, and needs no file to be told of it."""
    return fn
