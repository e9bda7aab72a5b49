"""Barriers, and how long ranks wait, in simulated time."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from conftest import OpenWorld
from ranks import SIXTY_FOUR, failures, on_ranks

import torchemu as torch
import torchemu.distributed as dist
from torchemu.errors import DeadlockError
from torchemu.runtime.waiting import host_time, reach

WORLD_SIZES = [1, 2, 3, 4, 7, 8, 16, 64]
MILLISECOND = 10**9


@pytest.mark.parametrize("world_size", WORLD_SIZES)
@pytest.mark.parametrize("barrier", [dist.barrier, dist.monitored_barrier], ids=["barrier", "monitored_barrier"])
def test_nobody_leaves_before_all_have_come(open_world: OpenWorld, barrier: Any, world_size: int) -> None:
    open_world(SIXTY_FOUR)

    def program(rank: int) -> tuple[int, int]:
        dist.init_process_group("gloo")
        for _ in range(2):
            reach(rank * MILLISECOND)
            came = host_time()
            assert barrier() is None
        return came, host_time()

    times = on_ranks(world_size, program)
    assert min(left for _, left in times) >= max(came for came, _ in times)


def test_an_asynchronous_barrier(open_world: OpenWorld) -> None:
    open_world("sips2")

    def program(rank: int) -> tuple[int, int]:
        dist.init_process_group()
        reach(rank * MILLISECOND)
        work = dist.barrier(async_op=True, device_ids=[rank])
        issued = host_time()
        work.wait()
        return issued, host_time()

    (issued, left), (came, _) = on_ranks(2, program)
    assert issued < MILLISECOND < came <= left


def test_a_barrier_of_some_ranks(open_world: OpenWorld) -> None:
    open_world("default")

    def program(rank: int) -> int:
        dist.init_process_group()
        group = dist.new_group([0, 2])
        if rank in (0, 2):
            reach(rank * MILLISECOND)
            dist.barrier(group)
            dist.monitored_barrier(group)
        return host_time() // MILLISECOND

    assert on_ranks(4, program) == [2, 0, 2, 0]


def test_a_barrier_that_lasts_too_long(open_world: OpenWorld) -> None:
    open_world("sips2")

    def program(rank: int) -> Any:
        dist.init_process_group()
        if rank == 1:
            reach(100 * MILLISECOND)
            return dist.barrier()
        start = host_time()
        with pytest.raises(RuntimeError, match=r"^Operation timed out! It took more than 20 ms: "):
            dist.barrier(timeout=timedelta(milliseconds=20))
        return host_time() - start

    waited, _ = on_ranks(2, program)
    assert 0 <= waited - 20 * MILLISECOND < MILLISECOND


def test_waiting_for_a_work_no_longer_than(open_world: OpenWorld) -> None:
    open_world("sips2")

    def program(rank: int) -> Any:
        dist.init_process_group()
        t = torch.full((2,), rank + 1.0)
        if rank == 1:
            reach(100 * MILLISECOND)
        work = dist.all_reduce(t, async_op=True)
        if rank == 0:
            with pytest.raises(RuntimeError, match=r"Operation timed out! It took more than 20 ms"):
                work.wait(timedelta(milliseconds=20))
            with pytest.raises(RuntimeError, match=r"Operation timed out! It took more than 30 ms"):
                work.wait(timedelta(milliseconds=30))
        assert work.wait(timedelta(seconds=1))  # it goes on: the time is the waiting host's
        return t.tolist(), host_time() // MILLISECOND

    assert on_ranks(2, program) == [([3, 3], 100)] * 2


def test_a_missing_rank(open_world: OpenWorld) -> None:
    """… is a deadlock, and no reason to wait half an hour."""
    open_world("default")

    def program(rank: int) -> None:
        dist.init_process_group()
        if rank != 2:
            dist.barrier()

    found = failures(4, program)
    assert set(found) == {0, 1, 3}
    for error in found.values():
        assert type(error) is DeadlockError
        assert "barrier (collective #0 of group default)" in str(error)
        assert str(error).endswith("likely cause: rank 2 ended without calling barrier #0 of group default")


# -- monitored barriers


def late(missing: set[int], **options: Any) -> Any:
    """A program in which some ranks do not come to a monitored barrier."""

    def program(rank: int) -> None:
        dist.init_process_group("gloo", timeout=timedelta(seconds=60))
        if rank not in missing:
            dist.monitored_barrier(timeout=timedelta(seconds=2), **options)

    return program


@pytest.mark.parametrize("missing", [{1}, {2, 3}, {1, 2, 3}])
def test_rank_0_names_the_first_missing_rank(open_world: OpenWorld, missing: set[int]) -> None:
    open_world("default")
    found = failures(4, late(missing))
    assert type(found[0]) is RuntimeError
    assert str(found[0]) == (
        f"[Rank 0]: Rank {min(missing)} failed to pass monitoredBarrier in 2000 ms\n Original exception: \n"
        "Timed out waiting 2000ms for recv operation to complete"
    )


@pytest.mark.parametrize("missing", [{1}, {2, 3}, {1, 2, 3}])
def test_rank_0_names_all_missing_ranks(open_world: OpenWorld, missing: set[int]) -> None:
    open_world("default")
    found = failures(4, late(missing, wait_all_ranks=True))
    ranks = ", ".join(map(str, sorted(missing)))
    assert str(found[0]) == f"[Rank 0]: Ranks {ranks} failed to pass monitoredBarrier in 2000 ms"


def test_what_the_others_see(open_world: OpenWorld) -> None:
    """When rank 0 goes on, those that have come wait as long as the group's timeout says."""
    open_world("default")
    seen: dict[int, tuple[str, int]] = {}

    def program(rank: int) -> None:
        try:
            late({2})(rank)
        except RuntimeError as error:
            seen[rank] = str(error).split("\n")[0], host_time() // (1000 * MILLISECOND)
        if rank == 0:
            reach(100_000 * MILLISECOND)

    on_ranks(4, program)
    others = (
        "Rank {} successfully reached monitoredBarrier, but received errors while waiting for send/recv from rank 0. "
        "Please check rank 0 logs for faulty rank."
    )
    assert seen[0] == ("[Rank 0]: Rank 2 failed to pass monitoredBarrier in 2000 ms", 2)
    assert seen[1] == (others.format(1), 60) and seen[3] == (others.format(3), 60)


def test_a_late_rank_is_in_time(open_world: OpenWorld) -> None:
    open_world("default")

    def program(rank: int) -> int:
        dist.init_process_group("gloo")
        reach(rank * 500 * MILLISECOND)
        dist.monitored_barrier(timeout=timedelta(seconds=2))
        return host_time() // (500 * MILLISECOND)

    assert on_ranks(4, program) == [3] * 4


def test_monitored_barriers_after_one_that_failed(open_world: OpenWorld) -> None:
    """Each has messages of its own: what a missing rank did not get is not taken for the next one's."""
    open_world("sips2")

    def program(rank: int) -> list[str]:
        dist.init_process_group("gloo", timeout=timedelta(seconds=60))
        if rank == 1:
            reach(5000 * MILLISECOND)
        ends = []
        for _ in range(3):
            try:
                dist.monitored_barrier(timeout=timedelta(seconds=2 if rank == 0 and not ends else 100))
                ends.append("passed")
            except RuntimeError as error:
                ends.append(str(error).split(",")[0])
        return ends

    first = "[Rank 0]: Rank 1 failed to pass monitoredBarrier in 2000 ms\n Original exception: \nTimed out waiting"
    other = "Rank 1 successfully reached monitoredBarrier"
    zero, one = on_ranks(2, program)
    assert zero[0].startswith(first) and zero[1:] == ["passed"] * 2
    assert one == [other, "passed", "passed"]


def test_a_timeout_in_seconds_is_warned_of(open_world: OpenWorld) -> None:
    open_world("sips2")

    def program(rank: int) -> None:
        dist.init_process_group("gloo")
        with pytest.warns(UserWarning, match=r"Please specify timeout arg as a timedelta") as caught:
            dist.monitored_barrier(timeout=2.5)
        assert caught[0].filename == __file__

    on_ranks(2, program)


def test_rank_0_is_the_first_to_say_who_has_not_come(open_world: OpenWorld) -> None:
    """It comes a little later than the others, whose time is over before its own."""
    open_world("default")

    def program(rank: int) -> None:
        dist.init_process_group("gloo", timeout=timedelta(seconds=2))
        if rank == 0:
            reach(10**8)
        if rank != 3:
            dist.monitored_barrier()
        else:
            reach(10 * 10**12)

    found = failures(4, program)
    assert list(found) == [0] and str(found[0]).startswith(
        "[Rank 0]: Rank 3 failed to pass monitoredBarrier in 2000 ms"
    )
