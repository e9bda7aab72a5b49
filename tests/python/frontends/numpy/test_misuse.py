"""Wrong arguments, and objects used after their end, in another World or on another thread."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from conftest import OpenWorld
from programs import check_that_all_works, failure_of, wait_for_all

import torchemu as torch
from torchemu import runtime

dist = torch.distributed
spawn = torch.multiprocessing.spawn
RAISED = torch.multiprocessing.ProcessRaisedException


@pytest.fixture(autouse=True)
def world(open_world: OpenWorld) -> torch.World:
    opened = open_world()
    dist.init_process_group()
    return opened


# -- wrong arguments of collectives


def test_wrong_arguments() -> None:
    t = torch.zeros(4)
    cases: list[tuple[Any, type[Exception], str]] = [
        (lambda: dist.all_reduce(np.zeros(4)), TypeError, r"`tensor` of type torch.Tensor\n *but got <class 'numpy"),
        (lambda: dist.all_reduce(None), TypeError, r"Expected parameter `tensor`"),
        (lambda: dist.all_gather_into_tensor(t, 3), TypeError, r"Expected parameter `input_tensor`"),
        (lambda: dist.reduce_scatter_tensor(3, t), TypeError, r"Expected parameter `output`"),
        (
            lambda: dist.all_reduce(t, "add"),
            TypeError,
            r"incompatible .*\n.*\n.* sum, avg, prod, min, max.*\n\n.*'add'",
        ),
        (lambda: dist.all_reduce(t, ""), TypeError, r"incompatible function arguments"),
        (lambda: dist.all_reduce(t, 0), TypeError, r"incompatible function arguments.*\n.*\n.*\n\nInvoked with: 0"),
        (lambda: dist.all_reduce(t, "bxor"), RuntimeError, r"Cannot use ReduceOp.BXOR with non-integral dtype"),
        (lambda: dist.all_reduce(torch.zeros(1, dtype="bool"), "avg"), ValueError, r"avg is not defined on bool"),
        (lambda: dist.all_reduce(t, group=3), ValueError, r"Process group 3 is not initialized in the world group map"),
        (lambda: dist.all_reduce(torch.zeros(1, device=2)), ValueError, r"on device 2, but rank 0 .*set_device\(0\)"),
        (
            lambda: dist.all_gather_into_tensor(t, t),
            RuntimeError,
            r"invalid tensor size at index 0 \(expected \(4\), got \(1\)\)",
        ),
        (
            lambda: dist.reduce_scatter_tensor(t, t),
            RuntimeError,
            r"Check failed: outputShape\[0\] \* worldSize == inputShape\[0\] \(16 vs. 4\)",
        ),
        (lambda: dist.all_gather_into_tensor(t, torch.zeros(1, dtype="f16")), RuntimeError, r"dtype=c10::Half.*=float"),
    ]
    for call, kind, text in cases:
        with pytest.raises(kind, match=text):
            call()
    check_that_all_works()  # none of them has joined


def test_wrong_use_of_init_process_group() -> None:
    with pytest.raises(ValueError, match=r"initialize the default process group twice"):
        dist.init_process_group()
    dist.destroy_process_group()
    for wrong, kind, text in [
        ({"backend": "mpi"}, RuntimeError, r"Distributed package doesn't have MPI built in"),
        ({"rank": 2}, ValueError, r"rank 2 must be started by spawn"),
        ({"world_size": 0}, ValueError, r"world size 0 does not fit"),
        ({"world_size": 1000}, ValueError, r"world size 1000 does not fit"),
        ({"worldsize": 4}, TypeError, r"unexpected keyword"),
    ]:
        with pytest.raises(kind, match=text):
            dist.init_process_group(**wrong)  # type: ignore[arg-type]
        assert not dist.is_initialized()
    dist.init_process_group("AHBM", world_size=4, rank=0)
    check_that_all_works()


def test_wrong_use_inside_a_rank() -> None:
    dist.destroy_process_group()

    def rank(r: int) -> None:
        for wrong in ({"world_size": 3}, {"rank": r + 1}):
            with pytest.raises(ValueError, match=r"world_size 3 is not|rank . was given by"):
                dist.init_process_group(**wrong)  # type: ignore[arg-type]

    spawn(rank, nprocs=4)


def test_use_after_destroy() -> None:
    group = runtime.current().group
    dist.destroy_process_group()
    t = torch.zeros(1)
    for call in (dist.get_rank, dist.get_world_size, dist.destroy_process_group, lambda: dist.all_reduce(t)):
        with pytest.raises(ValueError, match=r"Default process group has not been initialized"):
            call()
    assert group is not None and group.size() == 4
    assert t.item() == 0


def test_wrong_use_of_spawn() -> None:
    cases: list[tuple[Any, type[Exception], str]] = [
        (lambda: spawn(print, nprocs=5), ValueError, r"5 processes do not fit topology .*default.*: it has 4 SIPs"),
        (lambda: spawn(print, nprocs=2**70), ValueError, r"1180591620717411303424.* must fit 64 bits"),
        (lambda: spawn(print, nprocs=2.0), TypeError, r"nprocs must be an integer, not 2.0"),
        (lambda: spawn(print, nprocs="2"), TypeError, r"nprocs must be an integer"),
        (lambda: spawn("print", nprocs=1), RAISED, r"TypeError: 'str' object is not callable"),
        (lambda: spawn(print, args=3, nprocs=1), TypeError, r"must be an iterable, not int"),
    ]
    for call, kind, text in cases:
        with pytest.raises(kind, match=text):
            call()
    check_that_all_works()


def test_spawn_inside_a_rank() -> None:
    error = failure_of(lambda r: spawn(print, nprocs=1))
    assert "RuntimeError: spawn inside a spawned rank is not supported" in error.msg


# -- Worlds and threads


def test_tensor_of_another_world(open_world: OpenWorld) -> None:
    mine = torch.zeros(2)
    open_world("default")
    other = torch.ones(2)
    dist.init_process_group()
    with pytest.raises(RuntimeError, match=r"`tensor` belongs to another World than the process group"):
        dist.all_reduce(mine)
    for a, b in [(mine, other), (other, mine)]:
        with pytest.raises(RuntimeError, match=r"the tensors belong to different Worlds; copy through numpy"):
            a.copy_(b)
    assert mine.clone().world is mine.world
    assert mine.tolist() == [0, 0]
    assert (mine == other.numpy()).tolist() == [False, False]


def test_use_after_close() -> None:
    with runtime.opened() as world:
        dist.init_process_group()
        group = runtime.current().group
        t = torch.ones(2)
        work = dist.all_reduce(t, async_op=True)
    assert work is not None and group is not None
    for call in (t.numpy, t.clone, t.tolist, t.wait, lambda: t.fill_(0), lambda: t + 1, work.wait, work.is_completed):
        with pytest.raises(RuntimeError, match=r"World is closed"):
            call()
    for use in (world.collectives, lambda: dist.all_reduce(torch.ones(2), group=group)):
        with pytest.raises(RuntimeError, match=r"World"):
            use()
    world.close()
    assert t.shape == (2,)
    check_that_all_works()


def test_a_world_that_is_closed_inside_a_spawn() -> None:
    with runtime.opened() as inner:
        dist.init_process_group()

        def rank(r: int) -> None:
            if r == 1:
                inner.close()
            wait_for_all()

        with pytest.raises(RuntimeError, match=r"World is closed"):
            spawn(rank, nprocs=4)
    check_that_all_works()


def in_thread(call: Callable[[], Any]) -> Any:
    """Returns what the call raises on another thread, or returns."""
    result: list[Any] = []

    def run() -> None:
        try:
            result.append(call())
        except Exception as error:
            result.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    return result[0]


def test_another_thread() -> None:
    t = torch.ones(2)
    world = runtime.current_world()
    for call in (
        t.numpy,
        t.clone,
        lambda: torch.zeros(100_000),
        lambda: dist.all_reduce(t),
        lambda: spawn(print, nprocs=1),
        world.collectives,
        world.close,
    ):
        error = in_thread(call)
        assert type(error) is RuntimeError, error
        assert "a World belongs to the thread that opened it" in str(error)
    assert t.tolist() == [1, 1]
    check_that_all_works()


def test_a_world_of_another_thread() -> None:
    """Worlds on two threads do not disturb each other's objects."""

    def elsewhere() -> Any:
        other = torch.World("sips2")
        try:
            return other.spec["system"]["sips"]["count"]
        finally:
            other.close()

    assert in_thread(elsewhere) == 2
    check_that_all_works()


def test_a_thread_inside_a_rank() -> None:
    def rank(r: int) -> None:
        t = torch.ones(1)
        assert "belongs to the thread" in str(in_thread(t.item))
        wait_for_all()

    spawn(rank, nprocs=4)
