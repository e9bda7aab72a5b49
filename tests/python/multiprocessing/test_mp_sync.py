"""How ranks wait for each other through torch.multiprocessing: locks, conditions, events and barriers; deadlocks."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest
from conftest import OpenWorld
from ranks import SIXTY_FOUR, failures, on_ranks

import torchemu.multiprocessing as mp
from torchemu.errors import DeadlockError
from torchemu.runtime.waiting import host_time

WORLD_SIZES = [1, 2, 5, 16, 64]
MICROSECOND = 10**6
SECOND = 10**12


@pytest.fixture
def world(open_world: OpenWorld) -> None:
    open_world(SIXTY_FOUR)


def pause(microseconds: int) -> None:
    """Lets simulated time pass on this rank: an access to something shared takes one microsecond."""
    event = mp.Event()
    for _ in range(microseconds):
        event.is_set()


@pytest.mark.usefixtures("world")
@pytest.mark.parametrize("world_size", WORLD_SIZES)
class TestRanksMeet:
    def test_a_lock_makes_an_update_whole(self, world_size: int) -> None:
        lock, number = mp.Lock(), mp.Value("q", 0, lock=False)

        def program(rank: int) -> None:
            for _ in range(3):
                with lock:
                    before = number.value
                    pause(2)
                    number.value = before + rank + 1

        on_ranks(world_size, program)
        assert number.value == 3 * world_size * (world_size + 1) // 2

    def test_without_a_lock_updates_are_lost(self, world_size: int) -> None:
        number = mp.Value("q", 0, lock=False)

        def program(rank: int) -> None:
            before = number.value
            pause(2)
            number.value = before + 1

        on_ranks(world_size, program)
        assert number.value == 1

    def test_a_value_has_a_lock(self, world_size: int) -> None:
        number = mp.Value("i", 0)

        def program(rank: int) -> None:
            with number.get_lock():
                number.value += 2

        on_ranks(world_size, program)
        assert number.value == 2 * world_size

    def test_a_semaphore_lets_so_many_in(self, world_size: int) -> None:
        semaphore, inside, most = mp.Semaphore(3), [], []

        def program(rank: int) -> None:
            with semaphore:
                inside.append(rank)
                most.append(len(inside))
                pause(5)
                inside.remove(rank)

        on_ranks(world_size, program)
        assert max(most) == min(world_size, 3)
        assert len(most) == world_size
        assert semaphore.get_value() == 3

    def test_nobody_passes_a_barrier_before_all_are_there(self, world_size: int) -> None:
        barrier, log = mp.Barrier(world_size), []

        def program(rank: int) -> list[int]:
            places = []
            for turn in range(3):
                pause(rank)
                log.append(turn)
                places.append(barrier.wait())
            return places

        places = on_ranks(world_size, program)
        assert log == [0] * world_size + [1] * world_size + [2] * world_size
        for turn in range(3):
            assert sorted(p[turn] for p in places) == list(range(world_size))

    def test_an_event_wakes_all(self, world_size: int) -> None:
        event = mp.Event()

        def program(rank: int) -> tuple[bool, int]:
            if rank == 0:
                pause(20)
                event.set()
            return event.wait(), host_time() // MICROSECOND

        answers = on_ranks(world_size, program)
        assert answers == [(True, 22)] + [(True, 21)] * (world_size - 1)

    def test_the_same_program_takes_the_same_course(self, open_world: OpenWorld, world_size: int) -> None:
        def course() -> list[Any]:
            open_world(SIXTY_FOUR)
            q, lock, log = mp.Queue(3), mp.Lock(), []

            def program(rank: int) -> None:
                q.put(rank)
                with lock:
                    log.append((rank, q.get(), host_time()))

            on_ranks(world_size, program)
            return log

        first = course()
        assert len(first) == world_size
        assert course() == first


@pytest.mark.usefixtures("world")
class TestLocks:
    @pytest.mark.parametrize("make", [mp.Lock, mp.RLock, mp.Semaphore])
    def test_a_timeout_passes_in_simulated_time(self, make: Callable[[], Any]) -> None:
        lock = make()

        def program(rank: int) -> tuple[bool, bool, bool, int]:
            if rank == 0:
                lock.acquire()
                pause(1_500)
                lock.release()
                return True, True, True, 0
            pause(3)
            answers = lock.acquire(block=False), lock.acquire(timeout=-1), lock.acquire(timeout=0.001)
            return *answers, host_time()

        assert on_ranks(2, program)[1] == (False, False, False, 1006 * MICROSECOND)

    def test_who_waited_longest_is_next(self) -> None:
        lock, order = mp.Lock(), []

        def program(rank: int) -> None:
            pause(10 * (5 - rank))
            for _ in range(2):
                with lock:
                    order.append(rank)
                    pause(100)

        on_ranks(5, program)
        assert order == [4, 3, 2, 1, 0] * 2

    def test_an_rlock_is_free_after_as_many_releases(self) -> None:
        lock = mp.RLock()

        def program(rank: int) -> bool | None:
            if rank == 1:
                pause(5)
                with pytest.raises(AssertionError, match="attempt to release recursive lock not owned by thread"):
                    lock.release()
                return lock.acquire(timeout=1)
            with lock, lock:
                pause(10)
            return None

        assert on_ranks(2, program)[1] is True

    def test_any_rank_may_release_a_lock(self) -> None:
        lock = mp.Lock()

        def program(rank: int) -> None:
            if rank == 0:
                lock.acquire()
                lock.acquire()
            else:
                pause(10)
                lock.release()

        on_ranks(2, program)

    @pytest.mark.parametrize("make", [mp.Lock, lambda: mp.BoundedSemaphore(2)])
    def test_too_many_releases(self, make: Callable[[], Any]) -> None:
        lock = make()
        with lock:
            pass
        with pytest.raises(ValueError, match="semaphore or lock released too many times"):
            lock.release()

    def test_a_semaphore_may_grow(self) -> None:
        semaphore = mp.Semaphore(0)
        semaphore.release()
        assert (semaphore.get_value(), semaphore.acquire(), semaphore.get_value()) == (1, True, 0)
        with pytest.raises(ValueError, match="must be >= 0, not -1"):
            mp.Semaphore(-1)


@pytest.mark.usefixtures("world")
class TestConditions:
    @pytest.mark.parametrize("make", [lambda: None, mp.Lock, mp.RLock])
    def test_wait_for(self, make: Callable[[], Any]) -> None:
        condition, items = mp.Condition(make()), []

        def program(rank: int) -> list[int]:
            with condition:
                if rank < 3:
                    condition.wait_for(lambda: len(items) > rank)
                    return list(items)
            for i in range(3):
                pause(50)
                with condition:
                    items.append(i)
                    condition.notify_all()
            return []

        assert on_ranks(4, program) == [[0], [0, 1], [0, 1, 2], []]

    def test_notify_wakes_so_many(self) -> None:
        condition, woken = mp.Condition(), []

        def program(rank: int) -> bool:
            if rank == 4:
                pause(100)
                for n in (1, 2):
                    with condition:
                        condition.notify(n)
                    pause(100)
                return True
            with condition:
                pause(1)
                notified = condition.wait(timeout=1)
                woken.append(rank)
                return notified

        assert on_ranks(5, program) == [True, True, True, False, True]
        assert woken == [0, 1, 2, 3]

    def test_wait_for_in_vain(self) -> None:
        condition = mp.Condition()
        with condition:
            before = host_time()
            assert condition.wait_for(lambda: 0, timeout=2) == 0
            assert host_time() - before == 2 * SECOND

    def test_the_lock_is_needed(self) -> None:
        condition = mp.Condition()
        with pytest.raises(AssertionError, match=r"must acquire\(\) condition before using wait\(\)"):
            condition.wait()
        with pytest.raises(AssertionError, match="lock is not owned"):
            condition.notify()
        with pytest.raises(TypeError, match="a Condition needs a Lock or RLock"):
            mp.Condition(threading.Lock())  # type: ignore[arg-type]


@pytest.mark.usefixtures("world")
class TestEventsAndBarriers:
    def test_clear_and_timeout(self) -> None:
        event = mp.Event()
        event.set()
        assert (event.is_set(), event.wait()) == (True, True)
        event.clear()
        before = host_time()
        assert (event.is_set(), event.wait(timeout=0.5)) == (False, False)
        assert host_time() - before == SECOND // 2 + 2 * MICROSECOND

    def test_who_asks_again_and_again_leaves_others_time(self) -> None:
        event = mp.Event()

        def program(rank: int) -> int:
            asked = 0
            if rank == 1:
                pause(10)
                event.set()
            while not event.is_set():
                asked += 1
            return asked

        assert on_ranks(2, program) == [11, 0]

    def test_a_late_rank_breaks_the_barrier(self) -> None:
        barrier = mp.Barrier(3, timeout=1)

        def program(rank: int) -> int:
            if rank < 2:
                with pytest.raises(threading.BrokenBarrierError):
                    barrier.wait(None if rank else 2)
                return host_time()
            pause(5)
            assert barrier.n_waiting == 2
            mp.Event().wait(timeout=3)
            assert barrier.broken
            with pytest.raises(threading.BrokenBarrierError):
                barrier.wait()
            barrier.reset()
            assert not barrier.broken
            return 0

        assert on_ranks(3, program) == [SECOND + MICROSECOND, SECOND + MICROSECOND, 0]

    @pytest.mark.parametrize("end", ["abort", "reset"])
    def test_who_waits_when_it_is_ended(self, end: str) -> None:
        barrier = mp.Barrier(3)

        def program(rank: int) -> None:
            if rank < 2:
                with pytest.raises(threading.BrokenBarrierError):
                    barrier.wait()
            else:
                pause(5)
                getattr(barrier, end)()
                assert barrier.broken == (end == "abort")

        on_ranks(3, program)

    def test_the_last_one_acts_before_all_go_on(self) -> None:
        log: list[Any] = []
        barrier = mp.Barrier(3, action=lambda: log.append("action"))

        def program(rank: int) -> None:
            barrier.wait()
            log.append(rank)

        on_ranks(3, program)
        assert log[0] == "action"
        assert sorted(log[1:]) == [0, 1, 2]

    def test_an_action_that_fails_breaks_it(self) -> None:
        def fail() -> None:
            raise LookupError

        barrier = mp.Barrier(2, action=fail)

        def program(rank: int) -> str:
            with pytest.raises((LookupError, threading.BrokenBarrierError)) as caught:
                barrier.wait()
            return caught.type.__name__

        assert on_ranks(2, program) == ["BrokenBarrierError", "LookupError"]

    def test_parties(self) -> None:
        with pytest.raises(ValueError, match="parties must be > 0, not 0"):
            mp.Barrier(0)


class TestDeadlocks:
    """A wait that nobody can end is reported with what was waited for, where it was made, and the place."""

    def test_report(self, open_world: OpenWorld) -> None:
        open_world("sips16")
        made = [
            mp.Semaphore(0),
            mp.Event(),
            mp.Barrier(3),
            mp.Queue(),
            mp.Pipe()[0],
            mp.Queue(1),
            mp.JoinableQueue(),
            mp.Condition(),
        ]
        first_line = TestDeadlocks.test_report.__code__.co_firstlineno + 3

        def program(rank: int) -> None:
            waits: list[Callable[[Any], Any]] = [
                lambda o: o.acquire(),
                lambda o: o.wait(),
                lambda o: o.wait(),
                lambda o: o.get(),
                lambda o: o.recv(),
                lambda o: [o.put(0), o.put(1)],
                lambda o: [o.put(0), o.join()],
                lambda o: [o.acquire(), o.wait()],
            ]
            waits[rank](made[rank])

        errors = failures(8, program)
        assert sorted(errors) == list(range(8))
        assert all(isinstance(e, DeadlockError) for e in errors.values())
        lines = str(errors[0]).splitlines()
        wait_line = program.__code__.co_firstlineno + 2

        def at(line: int, function: str) -> str:
            return f"{__file__}:{line} in {function}"

        expected = [
            ("a permit of the Semaphore made at {}, which has none left,", 0),
            ("the Event made at {}, which nobody has set,", 1),
            ("the Barrier made at {}, where 1 of 3 ranks are,", 2),
            ("something to get from the Queue made at {}", 3),
            ("something to get from the Pipe made at {}", 4),
            ("room in the Queue made at {}, which is full with 1,", 5),
            ("1 unfinished tasks of the JoinableQueue made at {}", 6),
            ("a notification of the Condition made at {}", 7),
        ]
        assert lines[1:] == [
            f"  rank {r} waits for {text.format(at(first_line + r, 'test_report'))} at {at(wait_line + r, '<lambda>')}"
            for text, r in expected
        ]

    def test_locks_in_a_circle(self, open_world: OpenWorld) -> None:
        open_world()
        locks = [mp.Lock() for _ in range(3)]

        def program(rank: int) -> None:
            with locks[rank], locks[(rank + 1) % 3]:
                pass

        errors = failures(3, program)
        line = program.__code__.co_firstlineno + 1
        made = f"{__file__}:{line - 3} in "
        text = str(errors[0])
        assert text.endswith("\nlikely cause: ranks 0-2 wait for each other in a circle")
        assert f"  rank 2 waits for the Lock made at {made}" in text
        assert f"which rank 0 has had since {__file__}:{line} in program, at {__file__}:{line} in program\n" in text


@pytest.mark.parametrize("schedule", ["random", "pct"])
@pytest.mark.parametrize("seed", range(5))
def test_results_do_not_depend_on_who_runs_first(open_world: OpenWorld, schedule: str, seed: int) -> None:
    world = open_world("sips8")
    world.schedule, world.seed = schedule, seed
    barrier, lock, q, total = mp.Barrier(8), mp.Lock(), mp.Queue(2), mp.Value("i", 0)

    def program(rank: int) -> int:
        barrier.wait()
        q.put(rank) if rank % 2 else pause(rank)
        got = q.get() if rank % 2 == 0 else 0
        with lock:
            before = total.value
            pause(1)
            total.value = before + got
        barrier.wait()
        return total.value

    assert on_ranks(8, program) == [1 + 3 + 5 + 7] * 8
