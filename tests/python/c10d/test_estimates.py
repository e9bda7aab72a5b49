"""How long collectives would take: as long as they do take, on a fabric that has nothing else to do."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import pytest
from conftest import OpenWorld
from ranks import SIXTY_FOUR, on_ranks

import torchemu as torch
import torchemu.distributed as dist
from torchemu.runtime.waiting import host_time, reach

N = 4096
MILLISECOND = 10**9


def calls(rank: int, n: int) -> dict[str, Callable[[], Any]]:
    """Collectives of which the core's table of what was run has one line each."""
    t, many = torch.ones(N), torch.ones(N * n)
    blocks = [torch.ones(N) for _ in range(n)] if rank == 0 else None
    return {
        "all_reduce": lambda: dist.all_reduce(t),
        "reduce": lambda: dist.reduce(t, 0),
        "broadcast": lambda: dist.broadcast(t, 0),
        "all_gather_into_tensor": lambda: dist.all_gather_into_tensor(many, t),
        "reduce_scatter_tensor": lambda: dist.reduce_scatter_tensor(t, many),
        "all_to_all_single": lambda: dist.all_to_all_single(many, many.clone()),
        "gather": lambda: dist.gather(t, blocks, 0),
        "scatter": lambda: dist.scatter(t, blocks, 0),
    }


@pytest.mark.parametrize("n", [1, 2, 3, 8, pytest.param(64, marks=pytest.mark.slow)])
def test_estimates_are_what_it_takes(open_world: OpenWorld, n: int) -> None:
    world = open_world(SIXTY_FOUR)

    def program(rank: int) -> dict[str, float | None]:
        dist.init_process_group()
        estimates = {}
        for name, call in calls(rank, n).items():
            with dist._time_estimator() as estimator:
                assert estimator.estimated_time is None
                call()
            estimates[name] = estimator.estimated_time
        for call in calls(rank, n).values():
            torch.ahbm.synchronize()
            reach(MILLISECOND - host_time() % MILLISECOND)  # all ranks begin at one time
            call()
        return estimates

    first, *others = on_ranks(n, program)
    assert all(other == first for other in others)
    took = {c["collective"]: (c["end"] - c["start"]) / 1e6 for c in world.collectives()}
    for name in calls(0, n):
        assert first[name] == pytest.approx(took[name], rel=1e-12, abs=1e-9), name


def test_nothing_is_done(open_world: OpenWorld) -> None:
    """One rank alone estimates; tensors stay as they are, no time passes, and the ranks are in step afterwards."""
    world = open_world("default")

    def program(rank: int) -> list[float]:
        dist.init_process_group()
        t = torch.full((2,), float(rank))
        if rank == 1:
            start = host_time()
            with dist._time_estimator(group=dist.group.WORLD, device=torch.device("cuda")) as estimator:
                dist.all_reduce(t)
                work = dist.all_reduce(t, async_op=True)
                assert work is not None and work.wait()
                dist.barrier()
                dist.send(t, 0)
            assert host_time() == start
            assert estimator.estimated_time is not None and estimator.estimated_time > 0
            assert t.tolist() == [1, 1]
        assert dist.group.WORLD is not None and dist.group.WORLD.hooks is None
        dist.all_reduce(t)
        total: list[float] = t.tolist()
        return total

    assert on_ranks(4, program) == [[6, 6]] * 4
    assert [c["collective"] for c in world.collectives()] == ["all_reduce"]


def test_several_add_up(open_world: OpenWorld) -> None:
    open_world("default")

    def program(rank: int) -> None:
        dist.init_process_group()
        t = torch.ones(N)

        def estimated(*calls: Callable[[], Any]) -> float:
            with dist._time_estimator() as estimator:
                for call in calls:
                    call()
            assert estimator.estimated_time is not None
            return estimator.estimated_time

        once = estimated(lambda: dist.all_reduce(t))
        sent = estimated(lambda: dist.isend(t, (rank + 1) % 4))
        received = estimated(lambda: dist.irecv(t, (rank - 1) % 4))
        reduce = functools.partial(dist.all_reduce, t)
        together = estimated(reduce, reduce, lambda: dist.isend(t, (rank + 1) % 4))
        assert once > 0 and sent > 0 and received > 0
        assert together == pytest.approx(2 * once + sent)
        assert estimated() == 0

    on_ranks(4, program)


def test_a_message_is_estimated_at_what_it_takes(open_world: OpenWorld) -> None:
    world = open_world("default")

    def program(rank: int) -> float | None:
        dist.init_process_group()
        t = torch.ones(N)
        exchange = dist.send if rank == 0 else dist.recv
        if rank == 1:
            return None
        with dist._time_estimator() as estimator:
            exchange(t, 2 - rank)
        exchange(t, 2 - rank)
        return estimator.estimated_time

    first, _, last = on_ranks(3, program)
    (took,) = [c["end"] - c["start"] for c in world.collectives()]
    assert first == last == took / 1e6


def test_uneven_exchanges_are_taken_to_be_everybodys(open_world: OpenWorld) -> None:
    open_world("default")

    def program(rank: int) -> None:
        dist.init_process_group()
        with dist._time_estimator() as even:
            dist.all_to_all_single(torch.empty(8), torch.ones(8), [2] * 4, [2] * 4)
        with dist._time_estimator() as uneven:
            dist.all_to_all_single(torch.empty(2000), torch.ones(2000), [0, 0, 0, 2000], [0, 0, 0, 2000])
        assert even.estimated_time is not None and uneven.estimated_time is not None
        assert 0 < even.estimated_time < uneven.estimated_time

    on_ranks(4, program)


def test_misuse(open_world: OpenWorld) -> None:
    open_world("sips2")

    def program(rank: int) -> None:
        with pytest.raises(ValueError, match="Default process group has not been initialized"), dist._time_estimator():
            pass
        dist.init_process_group()
        with pytest.raises(RuntimeError, match="Split sizes doesn't match"), dist._time_estimator():
            dist.all_to_all_single(torch.empty(2), torch.ones(2), [1, 2], [1, 1])
        assert dist.group.WORLD is not None and dist.group.WORLD.hooks is None

    on_ranks(2, program)
