"""torch.multiprocessing.Pool: its workers are processes of the system, which hold no rank."""

from __future__ import annotations

from collections.abc import Callable
from multiprocessing import get_context as system_context  # Python's, also while a run has replaced it
from multiprocessing.pool import Pool as SystemPool
from typing import Any

from torchemu.multiprocessing._start import get_start_method


class Pools:
    """It makes pools of processes, in one way of starting them.

    Args:
        method: the way; None for the one that is chosen when a pool is made.
    """

    def __init__(self, method: str | None = None) -> None:
        self._method = method

    def __call__(
        self,
        processes: int | None = None,
        initializer: Callable[..., object] | None = None,
        initargs: tuple[Any, ...] = (),
        maxtasksperchild: int | None = None,
    ) -> SystemPool:
        """Returns a pool of Python's; other ranks stand still while one waits for it."""
        method = self._method or get_start_method()
        return system_context(method).Pool(processes, initializer, initargs, maxtasksperchild)
