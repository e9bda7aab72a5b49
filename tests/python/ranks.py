"""Running a function on every rank of a spawn, for tests."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import torchemu.multiprocessing as mp
from torchemu.multiprocessing import SpawnException

SIXTY_FOUR = "name: sixty_four\nsystem: {sips: {count: 64}}\n"
"""A topology for worlds of up to 64 ranks."""


def on_ranks(nprocs: int, fn: Callable[..., Any], *args: Any) -> list[Any]:
    """Returns what fn(rank, *args) returns on each rank."""
    answers: list[Any] = [None] * nprocs

    def program(rank: int) -> None:
        answers[rank] = fn(rank, *args)

    mp.spawn(program, nprocs=nprocs)
    return answers


def failures(nprocs: int, fn: Callable[..., Any], *args: Any) -> dict[int, BaseException]:
    """The exceptions by which fn(rank, *args) fails, by rank."""
    with pytest.raises(SpawnException) as caught:
        on_ranks(nprocs, fn, *args)
    return {f.rank: f.exception for f in caught.value.errors}
