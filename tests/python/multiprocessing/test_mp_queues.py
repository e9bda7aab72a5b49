"""Tests of what ranks share through torch.multiprocessing: queues, pipes, numbers, and what a Manager makes."""

from __future__ import annotations

import queue
import threading
from typing import Any

import numpy as np
import pytest
from conftest import OpenWorld
from ranks import SIXTY_FOUR, on_ranks

import torchemu as torch
import torchemu.multiprocessing as mp
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
    def test_a_queue_carries_all_from_everybody(self, world_size: int) -> None:
        q = mp.Queue()

        def program(rank: int) -> list[Any] | None:
            q.put({"rank": rank, "values": list(range(rank))})
            return [q.get() for _ in range(world_size)] if rank == world_size - 1 else None

        got = on_ranks(world_size, program)[-1]
        assert sorted(got, key=lambda item: item["rank"]) == [
            {"rank": r, "values": list(range(r))} for r in range(world_size)
        ]

    def test_a_queue_with_a_bound_is_never_longer(self, world_size: int) -> None:
        q, sizes = mp.Queue(2), []

        def program(rank: int) -> list[int]:
            if rank > 0:
                for i in range(4):
                    q.put(100 * rank + i)
                return []
            got = []
            for _ in range(4 * (world_size - 1)):
                sizes.append(q.qsize())
                got.append(q.get())
            return got

        got = on_ranks(world_size, program)[0]
        assert sorted(got) == [100 * r + i for r in range(1, world_size) for i in range(4)]
        for r in range(1, world_size):
            assert [n for n in got if n // 100 == r] == [100 * r + i for i in range(4)], "in order for each rank"
        assert max(sizes, default=0) <= 2

    def test_tensors_go_through_a_queue_as_they_are(self, world_size: int) -> None:
        q = mp.SimpleQueue()

        def program(rank: int) -> list[float]:
            if rank == 0:
                t = torch.zeros(3)
                for _ in range(world_size - 1):
                    q.put({"t": t, "part": t[1:]})
            else:
                got = q.get()
                got["part"].fill_(7.0)
                t = got["t"]
            pause(1000)
            return t.tolist()

        assert on_ranks(world_size, program) == [[0.0, 7.0, 7.0] if world_size > 1 else [0.0] * 3] * world_size


@pytest.mark.usefixtures("world")
class TestQueues:
    def test_nothing_to_get_and_no_room(self) -> None:
        q = mp.Queue(maxsize=1)
        before = host_time()
        for get in (q.get_nowait, lambda: q.get(False), lambda: q.get(timeout=0.25)):
            with pytest.raises(queue.Empty):
                get()
        q.put("a")
        assert (q.empty(), q.full(), q.qsize()) == (False, True, 1)
        for put in (q.put_nowait, lambda x: q.put(x, False), lambda x: q.put(x, timeout=0.25)):
            with pytest.raises(queue.Full):
                put("b")
        assert q.get() == "a"
        assert (q.empty(), q.full(), q.qsize()) == (True, False, 0)
        assert host_time() - before == SECOND // 2 + 14 * MICROSECOND

    def test_what_is_put_in_comes_out_as_a_copy(self) -> None:
        q = mp.Queue()
        item = {"list": [1], "array": np.arange(3)}
        q.put(item)
        item["list"].append(2)
        got = q.get()
        assert got["list"] == [1]
        assert got["array"].tolist() == [0, 1, 2]
        with pytest.raises(AttributeError, match="local object"):
            q.put(lambda: None)
        assert q.empty()

    def test_what_ranks_share_goes_through_a_queue(self) -> None:
        q, answers = mp.Queue(), mp.SimpleQueue()
        q.put(("to", answers))
        to, same = q.get()
        assert (to, same) == ("to", answers)

    def test_closed_for_the_rank_that_closed_it(self) -> None:
        q = mp.Queue()

        def program(rank: int) -> None:
            if rank == 0:
                q.put("last words")
                q.close()
                q.join_thread()
                with pytest.raises(ValueError, match=r"^Queue <Queue made at .* is closed"):
                    q.put("more")
                with pytest.raises(ValueError, match="is closed"):
                    q.get()
            else:
                assert q.get() == "last words"

        on_ranks(2, program)

    def test_join_waits_until_all_is_done(self) -> None:
        q, done = mp.JoinableQueue(2), []

        def program(rank: int) -> None:
            if rank == 0:
                for i in range(6):
                    q.put(i)
                q.join()
                assert sorted(done) == list(range(6))
                return
            for _ in range(2):
                item = q.get()
                pause(20)
                done.append(item)
                q.task_done()

        on_ranks(4, program)
        with pytest.raises(ValueError, match=r"task_done\(\) called too many times"):
            q.task_done()

    def test_pipes(self) -> None:
        left, right = mp.Pipe()

        def program(rank: int) -> Any:
            if rank == 0:
                pause(5)
                left.send([1, 2])
                return left.recv()
            assert not right.poll()
            assert right.poll(1)
            assert right.poll()
            right.send([*right.recv(), 3])
            right.send_bytes(b"bytes")
            right.close()
            with pytest.raises(OSError, match="handle is closed"):
                right.recv()
            return None

        assert on_ranks(2, program)[0] == [1, 2, 3]
        assert left.recv_bytes() == b"bytes"

    def test_one_way_pipes(self) -> None:
        receiver, sender = mp.Pipe(duplex=False)
        assert (receiver.readable, receiver.writable, sender.readable, sender.writable) == (True, False, False, True)
        sender.send("x")
        assert receiver.recv() == "x"
        with pytest.raises(OSError, match="connection is read-only"):
            receiver.send("y")
        with pytest.raises(OSError, match="connection is write-only"):
            sender.poll()


@pytest.mark.usefixtures("world")
class TestValues:
    def test_arrays(self) -> None:
        array = mp.Array("d", [0.5, 1.5, 2.5])
        array[0] = 4
        array[1:] = [5, 6]
        assert (len(array), array[:], array[-1]) == (3, [4.0, 5.0, 6.0], 6.0)
        assert np.frombuffer(array.get_obj()).tolist() == [4.0, 5.0, 6.0]
        assert mp.Array("i", 2)[:] == [0, 0]
        with array.get_lock(), array:
            array[0] = 1

    def test_text(self) -> None:
        text = mp.Array("c", b"hello!")
        text.value = b"bye"
        assert text.value == b"bye"

    def test_raw(self) -> None:
        raw = mp.RawArray("i", [1, 2])
        np.frombuffer(raw, np.int32)[1] = 7
        assert list(raw) == [1, 7]
        assert mp.RawValue("f", 1.5).value == 1.5
        assert mp.Value("b", -1, lock=mp.Lock()).value == -1

    def test_misuse(self) -> None:
        with pytest.raises(TypeError, match="unknown typecode 'z': choose one of c, u, b, B"):
            mp.Value("z")
        with pytest.raises(TypeError, match=r"lock must be a Lock or RLock of torch\.multiprocessing, or a bool"):
            mp.Value("i", lock=threading.Lock())  # type: ignore[arg-type]


@pytest.mark.usefixtures("world")
class TestManagers:
    def test_a_dict_collects_results(self) -> None:
        with mp.Manager() as manager:
            results = manager.dict({"start": 0}, more=[1])

            def program(rank: int) -> None:
                results[rank] = {"square": rank * rank}
                results["more"].append(rank)  # changes a copy

            on_ranks(8, program)
            assert results.copy() == {"start": 0, "more": [1], **{r: {"square": r * r} for r in range(8)}}
            assert (len(results), 3 in results, results.get(99, "none")) == (10, True, "none")
            del results[3]
            assert set(results) == {"start", "more", 0, 1, 2, 4, 5, 6, 7}
            assert str(manager.dict(a=1)) == "{'a': 1}"

    def test_a_list(self) -> None:
        items = mp.Manager().list([3])

        def program(rank: int) -> None:
            items.append(rank)

        on_ranks(3, program)
        items.insert(0, 9)
        items.sort(reverse=True)
        assert items[:] == [9, 3, 2, 1, 0]
        items[0] = 5
        items[1:3] = ["x"]
        del items[-1]
        assert (str(items), len(items), items[1]) == ("[5, 'x', 1]", 3, "x")

    def test_the_rest(self) -> None:
        manager = mp.Manager()
        space = manager.Namespace(x=1)
        space.y = [space.x]
        assert space.y == [1]
        with pytest.raises(AttributeError, match=r"has no 'z'"):
            _ = space.z
        value = manager.Value("i", 3)
        value.value += 1
        assert value.get() == 4
        assert manager.Array("i", [1, 2])[:] == [1, 2]
        q = manager.Queue(3)
        q.put(1)
        assert q.get() == 1
        assert manager.Event().is_set() is False
        manager.shutdown()
