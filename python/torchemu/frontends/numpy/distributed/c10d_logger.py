"""torch.distributed.c10d_logger: decorators by which PyTorch logs calls. Here they leave functions as they are."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from torchemu.c10d.debug import log
from torchemu.frontends.numpy.distributed.logging_handlers import _log_handlers

__all__: list[str] = []

F = TypeVar("F", bound=Callable[..., object])

_c10d_logger = log
_c10d_logger.addHandler(_log_handlers["default"])


def _exception_logger(func: F) -> F:
    return func


def _time_logger(func: F) -> F:
    return func
