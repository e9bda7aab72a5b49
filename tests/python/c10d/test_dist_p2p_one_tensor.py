"""Messages of parts of one tensor: none waits for another that it has nothing to do with."""

from __future__ import annotations

import random
from collections.abc import Callable

import numpy as np
import pytest
from conftest import OpenWorld
from ranks import on_ranks

import torchemu as torch
import torchemu.distributed as dist
from torchemu.multiprocessing import ProcessRaisedException

pytestmark = pytest.mark.filterwarnings("ignore::torchemu.runtime.outstanding.UnwaitedWarning")  # on purpose


def run(open_world: OpenWorld, ranks: int, program: Callable[[int], None]) -> None:
    """Runs the program on that many ranks, which are all that there are."""

    def whole(rank: int) -> None:
        dist.init_process_group()
        program(rank)

    open_world(f"name: some\nsystem: {{sips: {{count: {ranks}}}}}\n")
    on_ranks(ranks, whole)


@pytest.mark.parametrize("ranks", [2, 3, 8])
@pytest.mark.parametrize("batched", [True, False])
def test_halo_exchange(open_world: OpenWorld, ranks: int, batched: bool) -> None:
    """Each sends its own part and receives its neighbours' beside it, on one tensor."""

    def program(rank: int) -> None:
        t = torch.full((3, 5), float(rank))
        left, right = (rank - 1) % ranks, (rank + 1) % ranks
        calls = [(dist.isend, 1, right), (dist.isend, 1, left), (dist.irecv, 0, left), (dist.irecv, 2, right)]
        if batched:
            works = dist.batch_isend_irecv([dist.P2POp(call, t[row], peer) for call, row, peer in calls])
        else:
            works = [call(t[row], peer) for call, row, peer in calls]  # type: ignore[operator]
        for work in works:
            work.wait()
        expected = [float(left)] * 5 + [float(rank)] * 5 + [float(right)] * 5
        assert t.flatten().tolist() == expected

    run(open_world, ranks, program)


def test_one_tensor_to_several_peers(open_world: OpenWorld) -> None:
    """Rank 1 takes rank 0's message last, and rank 2's, which comes of rank 0's second one, first."""

    def program(rank: int) -> None:
        t = torch.full((4,), float(rank))
        if rank == 0:
            for work in [dist.isend(t, 1), dist.isend(t, 2)]:
                work.wait()
        elif rank == 1:
            dist.recv(t, 2)
            assert t.tolist() == [0.0] * 4
            dist.recv(t, 0)
        else:
            dist.recv(t, 0)
            dist.send(t, 1)
        assert t.tolist() == [0.0] * 4

    run(open_world, 3, program)


def test_what_is_received_is_passed_on(open_world: OpenWorld) -> None:
    """A message reads what an earlier one on the same part brings, and computations what all bring."""

    def program(rank: int) -> None:
        t = torch.full((8,), 10.0 * rank)
        if rank == 0:
            dist.isend(t[:4], 1)
        elif rank == 1:
            dist.irecv(t[:4], 0)
            dist.isend(t[2:6], 2)
            dist.irecv(t[6:], 2)
            dist.irecv(t[:2], 2)
            t *= 2
            assert t.tolist() == [40.0, 40.0, 0.0, 0.0, 20.0, 20.0, 40.0, 40.0]
        else:
            dist.isend(t[6:], 1)
            dist.irecv(t[4:], 1)
            dist.isend(t[:2], 1)
            assert t.tolist() == [20.0] * 4 + [0.0, 0.0, 10.0, 10.0]

    run(open_world, 3, program)


@pytest.mark.parametrize("seed", range(12))
def test_rounds_of_random_messages(open_world: OpenWorld, seed: int) -> None:
    """In each round ranks send parts that nothing is received into, and receive into others, in any order."""
    print("seed", seed)
    rng = random.Random(seed)
    ranks, size = rng.choice([2, 3, 5]), 24
    expected = [np.arange(size, dtype=np.float32) + 100 * r for r in range(ranks)]
    rounds = [_round(rng, expected, size) for _ in range(5)]

    def program(rank: int) -> None:
        t = torch.arange(size, dtype=torch.float32) + 100 * rank
        for posted in rounds:
            works = []
            for sends, first, length, peer, tag in posted[rank]:
                works.append((dist.isend if sends else dist.irecv)(t[first : first + length], peer, tag=tag))
            if posted[rank] and len(works) % 2:
                for work in works:
                    work.wait()
            t += 1
        assert np.array_equal(t.numpy(), expected[rank])

    run(open_world, ranks, program)


def _round(rng: random.Random, state: list[np.ndarray], size: int) -> list[list[tuple[bool, int, int, int, int]]]:
    """Returns each rank's posts of a round: (it sends, from where, how many, peer, tag); the state is that after it."""
    posted: list[list[tuple[bool, int, int, int, int]]] = [[] for _ in state]
    before = [s.copy() for s in state]
    half = size // 2  # what is sent is of one half, what is received into of the other
    places = [[p + half for p in range(half)] for _ in state]
    for tag in range(rng.randrange(8)):
        source, target = rng.sample(range(len(state)), 2)
        length = rng.randrange(4)
        if len(places[target]) < length:
            continue
        into = places[target][0] if length else 0
        del places[target][:length]
        first = rng.randrange(half - length + 1)
        state[target][into : into + length] = before[source][first : first + length]
        posted[source].append((True, first, length, target, tag))
        posted[target].append((False, into, length, source, tag))
    for mine, s in zip(posted, state, strict=True):
        rng.shuffle(mine)
        s += 1
    return posted


def test_a_circle_through_one_part_is_still_a_deadlock(open_world: OpenWorld) -> None:
    """Each sends what it is to receive before."""

    def program(rank: int) -> None:
        t = torch.zeros(4)
        dist.irecv(t[:3], 1 - rank)
        dist.isend(t[1:], 1 - rank)
        t.tolist()

    with pytest.raises(ProcessRaisedException, match=r"cause: ranks 0 and 1 wait for each other in a circle"):
        run(open_world, 2, program)
