"""Running functions on ranks that have groups for tensor parallelism."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ranks

import torchemu.distributed as dist
from torchemu.tp import parallel_state

DEGREES = (1, 2, 3, 4, 8)
"""Numbers of ranks among which layers are divided."""


def on_ranks(nprocs: int, fn: Callable[..., Any], *args: Any) -> list[Any]:
    """Returns what fn(rank, *args) returns on each rank, all of which have a default process group."""
    return ranks.on_ranks(nprocs, _with_group(fn), *args)


def failures(nprocs: int, fn: Callable[..., Any], *args: Any) -> dict[int, BaseException]:
    """The exceptions by which fn(rank, *args) fails, by rank."""
    return ranks.failures(nprocs, _with_group(fn), *args)


def on_tensor_parallel_ranks(nprocs: int, fn: Callable[..., Any], *args: Any) -> list[Any]:
    """Returns what fn(rank, *args) returns on each rank, all of which are one tensor parallel group."""

    def rank(r: int, *args: Any) -> Any:
        parallel_state.initialize_model_parallel(nprocs)
        return fn(r, *args)

    return on_ranks(nprocs, rank, *args)


def _with_group(fn: Callable[..., Any]) -> Callable[..., Any]:
    def rank(r: int, *args: Any) -> Any:
        dist.init_process_group()
        return fn(r, *args)

    return rank
