"""Works and futures: what a rank can ask of an operation that it has issued."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from conftest import OpenWorld
from ranks import failures, on_ranks

import torchemu as torch
import torchemu.distributed as dist
from torchemu import futures
from torchemu.errors import DeadlockError, MismatchError
from torchemu.futures import Future
from torchemu.runtime.waiting import host_time, reach

MILLISECOND = 10**9


def test_waiting_is_for_the_stream_and_not_for_the_host(open_world: OpenWorld) -> None:
    open_world("sips2")

    def program(rank: int) -> None:
        dist.init_process_group()
        t = torch.ones(1 << 20)
        start = host_time()
        work = dist.all_reduce(t, async_op=True)
        work.wait()
        work.synchronize()
        work.block_current_stream()
        issued = host_time() - start
        assert t.numpy()[0] == 2
        took = host_time() - start
        assert took > 5 * issued
        assert 0 < work._get_duration() * MILLISECOND <= took

    on_ranks(2, program)


def test_asking_in_a_loop(open_world: OpenWorld) -> None:
    """Time passes, and others run, while a program asks; the answer is as of when it asks."""
    open_world("sips2")

    def program(rank: int) -> tuple[int, int]:
        dist.init_process_group()
        if rank == 1:
            reach(300 * MILLISECOND)
        work = dist.all_reduce(torch.ones(2), async_op=True)
        assert work.exception() is None and not work.is_success()
        asked = 0
        while not work.is_completed():
            asked += 1
        assert work.is_success() and work.exception() is None
        return asked, host_time() // MILLISECOND

    (asked, noticed), (_, then) = on_ranks(2, program)
    assert 10 < asked < 1000
    assert 300 <= noticed <= 301 and then == 300


def test_duration_of_what_has_not_ended(open_world: OpenWorld) -> None:
    open_world("sips2")

    def program(rank: int) -> None:
        dist.init_process_group()
        work = dist.all_reduce(torch.ones(2), async_op=True)
        with pytest.raises(RuntimeError, match="the work has not ended: wait for it first"):
            work._get_duration()
        work.wait()
        assert work._get_duration() > 0  # the host waits for what it has waited for

    on_ranks(2, program)


def test_sequence_numbers(open_world: OpenWorld) -> None:
    open_world("default")

    def program(rank: int) -> list[int]:
        dist.init_process_group()
        pair = dist.new_group([0, 1] if rank < 2 else [2, 3], use_local_synchronization=True)
        works = [dist.all_reduce(torch.ones(1), group=g, async_op=True) for g in (None, pair, None, pair, None)]
        return [work._get_sequence_number() for work in works]

    assert on_ranks(4, program) == [[0, 0, 1, 1, 2]] * 4


def test_works_that_fail(open_world: OpenWorld) -> None:
    open_world("sips2")

    def program(rank: int) -> str:
        dist.init_process_group()
        t = torch.ones(2 + rank)
        if rank == 1:
            with pytest.raises(MismatchError) as raised:
                dist.all_reduce(t, async_op=True)
            return str(raised.value)
        work = dist.all_reduce(t, async_op=True)
        reach(MILLISECOND)
        assert work.is_completed() and not work.is_success()
        error = work.exception()
        assert type(error) is MismatchError
        for ask in (work.wait, work.synchronize, t.tolist, work.get_future().wait):
            with pytest.raises(MismatchError):
                ask()
        return str(error)

    first, second = on_ranks(2, program)
    assert first == second and "disagree on the number of elements" in first


# -- futures of works


def test_the_future_of_a_work(open_world: OpenWorld) -> None:
    open_world("sips2")

    def program(rank: int) -> None:
        dist.init_process_group()
        t = torch.full((2,), rank + 1.0)
        future = dist.all_reduce(t, async_op=True).get_future()
        assert isinstance(future, Future) and not future.done()
        assert future.value()[0] is t  # the tensor is known; what will be in it is another matter
        assert future.wait() == [t] and t.tolist() == [3, 3]
        assert future.done()
        asked = dist.all_reduce(torch.ones(1 << 20), async_op=True).get_future()
        while not asked.done():
            pass
        waited = dist.all_reduce(torch.ones(1 << 20), async_op=True).get_future()
        waited.wait()
        assert waited.done()  # as in PyTorch, although the device is still at it

    on_ranks(2, program)


def test_a_chain_of_callbacks(open_world: OpenWorld) -> None:
    """The sum is divided and then counted, as a communication hook of DDP has it."""
    open_world("default")

    def program(rank: int) -> None:
        dist.init_process_group()
        calls = []

        def divided(future: Future[list[torch.Tensor]]) -> torch.Tensor:
            calls.append("divided")
            t = future.value()[0]
            t.copy_(torch.from_numpy(t.numpy() / 4))
            return t

        bucket = torch.full((3,), rank + 1.0)
        future = (
            dist.all_reduce(bucket, async_op=True).get_future().then(divided).then(lambda f: (f.value(), len(calls)))
        )
        mean, count = future.wait()
        assert (mean.tolist(), count) == ([2.5] * 3, 1)

    on_ranks(4, program)


def test_collectives_in_callbacks(open_world: OpenWorld) -> None:
    """They are issued where the callback is added, so that all ranks issue them in the same order."""
    open_world("sips2")

    def program(rank: int) -> list[Any]:
        dist.init_process_group()

        def again(future: Future[list[torch.Tensor]]) -> torch.Tensor:
            t = future.value()[0]
            dist.all_reduce(t)
            return t

        chains = [dist.all_reduce(torch.full((2,), float(i)), async_op=True).get_future().then(again) for i in range(3)]
        return [t.tolist() for t in futures.wait_all(chains)]

    assert on_ranks(2, program) == [[[0, 0], [4, 4], [8, 8]]] * 2


def test_what_a_callback_issues_comes_after_the_work(open_world: OpenWorld) -> None:
    open_world("sips2")

    def program(rank: int) -> None:
        dist.init_process_group()
        first, others = torch.ones(1 << 20), torch.ones(2)
        work = dist.all_reduce(first, async_op=True)
        second = work.get_future().then(lambda f: dist.barrier(async_op=True)).wait()
        third = dist.all_reduce(others, async_op=True)
        for w in (work, second, third):
            w.wait()
            w.is_completed()
        assert others.tolist() == [2, 2]

    on_ranks(2, program)


# -- futures of programs


def test_a_future_of_a_program(open_world: OpenWorld) -> None:
    open_world()
    future: Future[int] = Future(devices=[0])
    seen: list[Any] = []
    after = future.then(lambda f: f.value() + 1)
    future.add_done_callback(lambda f: seen.append(f.value()))
    assert not future.done() and not after.done()
    with pytest.raises(RuntimeError, match="the Future has no value yet"):
        future.value()
    future.set_result(41)
    assert future.done() and (future.wait(), future.value(), after.wait(), seen) == (41, 41, 42, [41])
    assert future.then(lambda f: "at once").value() == "at once"
    for again in (lambda: future.set_result(1), lambda: future.set_exception(ValueError())):
        with pytest.raises(RuntimeError, match="Attempting to mark a completed Future as complete again"):
            again()


def test_futures_that_fail(open_world: OpenWorld) -> None:
    open_world()
    future: Future[int] = Future()
    boom = KeyError("boom")
    caught = future.then(lambda f: "caught" if f._error is boom else "")
    passed_on = future.then(lambda f: f.value())
    future.add_done_callback(lambda f: 1 / 0)  # what goes wrong there is nobody's business
    with pytest.raises(AssertionError, match="boom is of type <class 'str'>, not an Exception"):
        future.set_exception("boom")
    future.set_exception(boom)
    assert caught.wait() == "caught"
    together = futures.collect_all([caught, future])
    for broken in (future, together):
        with pytest.raises(KeyError, match="boom"):
            broken.wait()
    with pytest.raises(RuntimeError, match="Got the following error when running the callback: KeyError: 'boom'"):
        passed_on.wait()
    with pytest.raises(TypeError, match=r"then\(\): incompatible function arguments"):
        future.then(None)  # type: ignore[arg-type]


def test_a_work_has_ended_once_its_future_was_waited_for(open_world: OpenWorld) -> None:
    open_world("sips2")

    def program(rank: int) -> None:
        dist.init_process_group("gloo")
        work = dist.all_reduce(torch.ones(2), async_op=True)
        assert not work.is_success()
        work.get_future().wait()
        assert work.is_completed() and work.is_success() and work.exception() is None

    on_ranks(2, program)


def test_only_receives_have_a_source(open_world: OpenWorld) -> None:
    open_world("sips2")

    def program(rank: int) -> None:
        dist.init_process_group("gloo")
        message = dist.isend(torch.ones(2), 1) if rank == 0 else dist.irecv(torch.ones(2), 0)
        for work in (dist.all_reduce(torch.ones(2), async_op=True), *([message] if rank == 0 else [])):
            with pytest.raises(RuntimeError, match=r"sourceRank\(\) may only be called on work objects"):
                work.source_rank()
        assert rank == 0 or message.source_rank() == 0

    on_ranks(2, program)


def test_several_futures(open_world: OpenWorld) -> None:
    open_world("sips2")
    assert futures.collect_all([]).wait() == [] == futures.wait_all([])

    def program(rank: int) -> Any:
        dist.init_process_group()
        works = [dist.all_reduce(torch.full((1,), float(i)), async_op=True) for i in range(3)]
        mine: Future[int] = Future()
        together = futures.collect_all([*(work.get_future() for work in works), mine])
        assert not together.done()
        mine.set_result(7)
        *sums, seven = [future.value() for future in together.wait()]
        return [t.item() for (t,) in sums], seven

    assert on_ranks(2, program) == [([0, 2, 4], 7)] * 2


def test_a_future_that_another_rank_completes(open_world: OpenWorld) -> None:
    open_world("sips2")
    shared: dict[str, Future[str]] = {}

    def program(rank: int) -> tuple[str, int]:
        if rank == 0:
            shared["future"] = Future()
            return shared["future"].wait(), host_time() // MILLISECOND
        reach(3 * MILLISECOND)
        shared["future"].set_result("done")
        return "", 0

    assert on_ranks(2, program)[0] == ("done", 3)


def test_a_future_that_nobody_completes(open_world: OpenWorld) -> None:
    open_world("sips2")
    found = failures(1, lambda rank: Future().wait())
    assert type(found[0]) is DeadlockError
    assert "rank 0 waits for a Future at" in str(found[0]) and "which nobody has given a value" in str(found[0])


# -- coalescing


def test_coalescing_is_one_collective(open_world: OpenWorld) -> None:
    world = open_world("sips2")

    def program(rank: int) -> Any:
        dist.init_process_group()
        tensors = [torch.full((n,), rank + 1.0) for n in (3, 5, 2)]
        with dist._coalescing_manager(device=rank, async_ops=True) as manager:
            works = [dist.all_reduce(t, async_op=True) for t in tensors]
        assert len(manager.works) == 1
        manager.wait()
        for name in ("wait", "is_completed", "result", "get_future", "_get_duration"):
            with pytest.raises(ValueError, match=f"Illegal to call {name} on IllegalWork object"):
                getattr(works[0], name)
        return [t.tolist() for t in tensors]

    assert on_ranks(2, program) == [[[3] * 3, [3] * 5, [3] * 2]] * 2
    assert [(c["collective"], c["bytes"]) for c in world.collectives()] == [("all_reduce_coalesced", 40)]


def test_what_is_not_coalesced(open_world: OpenWorld) -> None:
    """Other reduce ops, dtypes and tensors with gaps are collectives of their own; broadcast is issued at once."""
    world = open_world("sips2")

    def program(rank: int) -> Any:
        dist.init_process_group()
        a, b, c = torch.ones(2), torch.full((2,), float(rank)), torch.ones(2, dtype="float64")
        around, other = torch.ones(2, 4), torch.full((2,), float(rank))
        with dist._coalescing_manager() as manager:
            dist.all_reduce(a)
            dist.broadcast(other, 1)
            assert np.array_equal(other.numpy(), [1, 1])
            dist.all_reduce(b, dist.ReduceOp.MAX)
            dist.all_reduce(c)
            dist.all_reduce(around[:, ::2])
        assert manager.works == []
        return a.tolist(), b.tolist(), c.tolist(), around.tolist()

    want = [2, 2], [1, 1], [2, 2], [[2, 1, 2, 1]] * 2
    assert on_ranks(2, program) == [want] * 2
    assert [c["collective"] for c in world.collectives()] == ["broadcast", *["all_reduce"] * 4]


def test_coalescing_nothing(open_world: OpenWorld) -> None:
    world = open_world("sips2")

    def program(rank: int) -> None:
        dist.init_process_group()
        with dist._coalescing_manager(async_ops=True) as manager:
            pass
        manager.wait()

    on_ranks(2, program)
    assert world.collectives() == []


def test_coalescing_several_kinds(open_world: OpenWorld) -> None:
    open_world("sips2")

    def program(rank: int) -> list[float]:
        dist.init_process_group()
        text = "all_gather_into_tensor inside a coalescing manager that began with all_reduce"
        with pytest.raises(ValueError, match=text), dist._coalescing_manager():
            dist.all_reduce(torch.ones(1))
            dist.all_gather_into_tensor(torch.zeros(2), torch.zeros(1))
        t = torch.ones(1)
        dist.all_reduce(t)  # nothing of the block was issued, and it is over
        return t.tolist()

    assert on_ranks(2, program) == [[2], [2]]
