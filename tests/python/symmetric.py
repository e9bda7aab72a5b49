"""What the tests of symmetric memory share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from ranks import on_ranks

import torchemu as torch
import torchemu.distributed as dist
import torchemu.distributed._symmetric_memory as symm_mem
from torchemu._C._distributed_c10d import _SymmetricMemory

SIZES = [1, 2, 3, 8, 64]


def symmetric(values: Any, dtype: Any = None) -> tuple[torch.Tensor, _SymmetricMemory]:
    """A symmetric tensor with these elements, and its handle."""
    given = torch.tensor(values, dtype=dtype)
    t = symm_mem.empty(given.shape, dtype=given.dtype)
    t.copy_(given)
    return t, symm_mem.rendezvous(t, "0")


def numbers(rank: int, *shape: int) -> np.ndarray:
    """Small whole numbers, other ones on each rank: their sums are exact in every order."""
    return np.random.default_rng(rank).integers(-3, 4, shape).astype(np.float32)


def on_group(n: int, fn: Callable[..., Any], *args: Any) -> list[Any]:
    """fn on the ranks of a default group."""

    def program(rank: int) -> Any:
        dist.init_process_group("nccl")
        return fn(rank, *args)

    return on_ranks(n, program)
