"""Programs that several tests spawn."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import torchemu as torch
from torchemu import runtime
from torchemu.multiprocessing import SpawnException

dist = torch.distributed
spawn = torch.multiprocessing.spawn


def failure_of(fn: Callable[[int], Any], nprocs: int = 4) -> SpawnException:
    """The exception of a spawn that must fail; and the World and its group must work after it."""
    with pytest.raises(SpawnException) as raised:
        spawn(fn, nprocs=nprocs)
    check_that_all_works()
    return raised.value


def check_that_all_works() -> None:
    def rank(r: int) -> None:
        t = torch.full((3,), r)
        dist.all_reduce(t)
        assert t.tolist() == [6, 6, 6]

    assert runtime.current().tasks is None
    spawn(rank, nprocs=4)


def wait_for_all() -> list[float]:
    t = torch.ones(2)
    dist.all_reduce(t)
    return t.tolist()
