"""Of orders in which ranks take turns those that are run have all outcomes of those that are not."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

import pytest

import torchemu
import torchemu.distributed as dist
from torchemu.launch.exploration import Choices, exhaust
from torchemu.runtime import current_world
from torchemu.runtime.tasks import Failure

RANKS = 3
BOUND = 5000  # runs
PROGRAMS = 25


class Orders:
    """A function, on ranks, as what is run in many orders."""

    depth = 0

    def __init__(self, function: Callable[[int], Any]) -> None:
        self.function = function
        self.runs = 0
        self.outcomes: set[str] = set()

    def failures(self, choices: Choices, silent: bool = False) -> list[Failure]:
        """Runs it once, and notes what comes out. Nothing counts as a failure: all orders are of interest."""
        self.runs += 1
        with torchemu.open_world("default"):
            world = current_world()
            world.explores = choices.schedule == "exhaustive"
            world.schedule, world.seed, world.numbers = choices.schedule, choices.seed, choices.numbers
            try:
                self.outcomes.add(repr(torchemu.run_ranks(self.function, RANKS)))
            except Exception as error:
                self.outcomes.add(f"{type(error).__name__}: {error}".partition("\n")[0].partition(" at ")[0])
        return []

    def reported(self, failed: Sequence[Failure]) -> int:
        """Is never called."""
        raise AssertionError(failed)


def both(function: Callable[[int], Any]) -> tuple[Orders, Orders]:
    """Runs a function in all orders, and in those that are enough."""
    all_orders, some = Orders(function), Orders(function)
    exhaust(all_orders, BOUND, full=True)
    exhaust(some, BOUND)
    return all_orders, some


def alone(rank: int) -> int:
    """Does nothing that others notice."""
    return rank


def same_key(rank: int) -> list[int]:
    store = dist.distributed_c10d._get_default_store()
    return [store.add("key", rank + 1)]


def own_keys(rank: int) -> bytes:
    store = dist.distributed_c10d._get_default_store()
    store.set(f"of {rank}", str(rank))
    return store.get(f"of {rank}")


def together(rank: int) -> None:
    dist.barrier()
    dist.barrier()


def first_come(rank: int) -> list[float]:
    part, found = torchemu.zeros(1), []
    if rank:
        dist.send(part + rank, 0)
        return []
    for _ in range(RANKS - 1):
        dist.recv(part)
        found.append(part.item())
    return found


@pytest.mark.parametrize(
    ("function", "orders", "enough", "outcomes"),
    [
        (alone, 6, 1, 1),
        (own_keys, 6, 1, 1),
        (same_key, 6, 6, 6),
        (together, 6, 1, 1),
        (first_come, 24, 6, 2),
    ],
)
def test_counts(
    function: Callable[[int], Any], orders: int, enough: int, outcomes: int, capfd: pytest.CaptureFixture[str]
) -> None:
    """Three ranks begin in 3! orders. They wait until simulated time lets them go on one by one."""
    whole, some = both(function)
    assert (whole.runs, len(whole.outcomes)) == (orders, outcomes)
    assert (some.runs, some.outcomes) == (enough, whole.outcomes)
    said = capfd.readouterr().err.splitlines()
    assert said[0] == f"{orders} runs: no failure; these are all orders"
    many = "1 run" if enough == 1 else f"{enough} runs"
    assert said[1].startswith(f"{many}: no failure; these are all orders")
    assert ("skipped" in said[1]) == (enough < orders)


DEEDS: list[Callable[[Any, str, int, int], Any]] = [
    lambda store, key, rank, peer: store.add(key, 1),
    lambda store, key, rank, peer: store.set(key, str(rank)),
    lambda store, key, rank, peer: store.check([key]),
    lambda store, key, rank, peer: store.compare_set(key, "", str(rank)),
    lambda store, key, rank, peer: store.delete_key(key),
    lambda store, key, rank, peer: store.num_keys(),
    lambda store, key, rank, peer: dist.isend(torchemu.full((1,), float(rank)), peer) and None,
    lambda store, key, rank, peer: dist.recv(torchemu.zeros(1)),
    lambda store, key, rank, peer: dist.barrier(),
]
"""An act of a rank with the store, a key, and another rank."""


def random_program(rng: random.Random) -> Callable[[int], list[Any]]:
    """Draws operations for each rank. Some programs fail, or are deadlocked, in some orders."""
    kinds = rng.sample(DEEDS[:-1], 3)
    drawn = [[(rng.choice(kinds), rng.choice("ab"), rng.choice([1, 2])) for _ in range(3)] for _ in range(RANKS)]
    if rng.random() < 0.3:
        for deeds in drawn:
            deeds.insert(rng.randint(0, 3), (DEEDS[-1], "", 0))

    def program(rank: int) -> list[Any]:
        store = dist.distributed_c10d._get_default_store()
        return [do(store, key, rank, (rank + by) % RANKS) for do, key, by in drawn[rank]]

    return program


@pytest.mark.slow
def test_random_programs_have_the_same_outcomes(capsys: pytest.CaptureFixture[str]) -> None:
    seed = random.randrange(1 << 32)
    print("seed", seed)
    rng = random.Random(seed)
    for number in range(PROGRAMS):
        whole, some = both(random_program(rng))
        if whole.runs < BOUND:
            assert fails(some) == fails(whole), (seed, number)
            assert fails(whole) or some.outcomes == whole.outcomes, (seed, number)


def fails(orders: Orders) -> bool:
    """Says whether the program has failed in some order. Then nobody would look for more."""
    return any(not outcome.startswith("[") for outcome in orders.outcomes)
