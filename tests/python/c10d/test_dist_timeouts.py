"""Timeouts of process groups, in simulated time."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from conftest import OpenWorld
from ranks import failures, on_ranks

import torchemu as torch
import torchemu.distributed as dist
from torchemu.distributed import distributed_c10d
from torchemu.errors import DeadlockError
from torchemu.runtime.waiting import host_time, reach

pytestmark = pytest.mark.shows("PyTorch: timeouts")

SECOND = 10**12

CALLS: dict[str, Callable[[], Any]] = {
    "all_reduce, read": lambda: summed().tolist(),
    "all_reduce, asked": lambda: asked(dist.all_reduce(torch.ones(2), async_op=True)),
    "barrier": dist.barrier,
    "broadcast of objects": lambda: dist.broadcast_object_list([1], 1),
    "recv": lambda: dist.recv(torch.zeros(2), 1),
    "recv from any rank": lambda: dist.recv(torch.zeros(2)),
    "send": lambda: dist.send(torch.zeros(2), 1),
}


def summed() -> torch.Tensor:
    t = torch.ones(2)
    dist.all_reduce(t)
    return t


def asked(work: dist.Work) -> None:
    while not work.is_completed():
        pass
    raise work.exception() or AssertionError("it has ended well")


@pytest.mark.parametrize("name", CALLS)
def test_a_rank_that_comes_too_late(open_world: OpenWorld, name: str) -> None:
    open_world("sips2")

    def program(rank: int) -> float:
        dist.init_process_group("gloo", timeout=timedelta(seconds=5))
        if rank == 1:
            reach(20 * SECOND)
            return 0
        with pytest.raises(dist.DistBackendError) as raised:
            CALLS[name]()
        assert str(raised.value).startswith(
            "Watchdog caught collective operation timeout: after 5000 ms, as long as its process group allows, this "
            "had not ended: "
        )
        assert f"at {__file__}:" in str(raised.value)
        return host_time() / SECOND

    assert on_ranks(2, program)[0] == pytest.approx(5, abs=0.4)


def test_who_comes_too_late_learns_it_too(open_world: OpenWorld) -> None:
    open_world("default")

    def program(rank: int) -> str:
        dist.init_process_group(timeout=timedelta(seconds=1))
        reach(rank * SECOND * 2 // 5)
        with pytest.raises(dist.DistBackendError) as raised:
            dist.barrier()
        reach(10 * SECOND)
        return str(raised.value).rpartition(": ")[2]

    assert set(on_ranks(4, program)) == {"rank 3 has not joined it"}


def test_timeouts_that_change(open_world: OpenWorld) -> None:
    """A group has its own; each of its ranks may change it; what was issued before keeps the old one."""
    open_world("sips2")

    def late(call: Callable[[], Any]) -> float:
        start = host_time()
        with pytest.raises(dist.DistBackendError):
            call()
        return round((host_time() - start) / SECOND, 1)

    def program(rank: int) -> Any:
        dist.init_process_group("gloo", timeout=timedelta(seconds=50))
        pair = dist.new_group([0, 1], timeout=timedelta(seconds=20))
        if rank == 1:
            return reach(200 * SECOND)
        t = torch.zeros(1)
        times = [late(lambda: dist.recv(t, 1, group=pair))]
        old = dist.irecv(t, 1, group=pair)
        pair.set_timeout(timedelta(seconds=3))
        times += [late(lambda: dist.recv(t, 1, group=pair)), late(lambda: asked(old))]
        distributed_c10d._set_pg_timeout(timedelta(seconds=7))
        times += [late(lambda: dist.recv(t, 1))]
        dist.group.WORLD.set_timeout(timedelta.max)
        work = dist.irecv(t, 1)
        reach(100 * SECOND)
        done = work.is_completed()
        dist.group.WORLD.abort()
        return times, done

    assert on_ranks(2, program)[0] == ([20, 3, pytest.approx(17, abs=1.2), 7], False)


def test_the_default_timeouts(open_world: OpenWorld) -> None:
    open_world("sips2")

    def program(rank: int, backend: str) -> float:
        dist.init_process_group(backend)
        if rank == 1:
            reach(10**4 * SECOND)
            return 0
        with pytest.raises(dist.DistBackendError):
            dist.barrier()
        return round(host_time() / SECOND / 60, 3)

    start = 0.0
    for backend, minutes in (("gloo", 30), ("nccl", 10)):
        then = on_ranks(2, program, backend)[0]
        assert then - start == pytest.approx(minutes, abs=0.01)
        start = 10**4 / 60


def test_nothing_waits_for_a_timeout(open_world: OpenWorld) -> None:
    """Where no rank can go on, there is no reason to."""
    open_world("sips2")

    def program(rank: int) -> None:
        dist.init_process_group(timeout=timedelta(seconds=5))
        if rank == 0:
            dist.barrier()

    error = failures(2, program)[0]
    assert type(error) is DeadlockError and str(error).startswith("deadlock at simulated time 0s: no rank can run")


def test_a_wait_may_be_longer_than_any_program(open_world: OpenWorld) -> None:
    open_world("sips2")

    def program(rank: int) -> bool:
        dist.init_process_group(timeout=timedelta.max)
        dist.barrier(timeout=timedelta.max)
        return dist.all_reduce(torch.ones(1), async_op=True).wait(timedelta.max)

    assert on_ranks(2, program) == [True, True]


@pytest.mark.parametrize("way", ["at once", "wait", "message"])
@pytest.mark.parametrize(("backend", "there"), [("gloo", True), ("nccl", False)])
def test_gloo_fails_where_the_program_calls_or_waits(
    open_world: OpenWorld, backend: str, there: bool, way: str
) -> None:
    """nccl's hosts go on: their exceptions come when they read."""
    open_world("sips2")

    def program(rank: int) -> None:
        dist.init_process_group(backend, timeout=timedelta(seconds=3))
        if rank == 1:
            reach(8 * 10**12)
            return
        t = torch.ones(4)
        caught = False
        try:
            if way == "at once":
                dist.all_reduce(t)
            elif way == "message":
                dist.irecv(t, 1).wait()
            else:
                dist.all_reduce(t, async_op=True).wait()
        except RuntimeError as error:
            caught = True
            assert "after 3000 ms" in str(error)
        assert caught == there
        if not there:
            with pytest.raises(RuntimeError, match="after 3000 ms"):
                t.tolist()

    on_ranks(2, program)
