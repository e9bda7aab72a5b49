"""Stores: what ranks find in them, when, and what is said when they do not."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from conftest import OpenWorld
from ranks import SIXTY_FOUR, failures, on_ranks

import torchemu.distributed as dist
from torchemu.errors import DeadlockError
from torchemu.runtime.waiting import host_time

pytestmark = pytest.mark.shows("PyTorch: stores")

WORLD_SIZES = [1, 2, 3, 7, 16, 64]
SECOND = 10**12
REQUEST = 50 * 10**6  # ps for a request to a store

MakeStore = Callable[[], dist.Store]


def tcp(rank: int, world_size: int, **options: Any) -> dist.TCPStore:
    return dist.TCPStore("localhost", 29500, world_size, rank == 0, **options)


KINDS: dict[str, MakeStore] = {
    "hash": dist.HashStore,
    "file": lambda: dist.FileStore("somewhere/store"),
    "tcp": lambda: dist.TCPStore("localhost", 29500, is_master=True),
    "prefix": lambda: dist.PrefixStore("outer", dist.PrefixStore("inner", dist.HashStore())),
}


@pytest.fixture(params=KINDS)
def store(request: pytest.FixtureRequest, open_world: OpenWorld) -> dist.Store:
    """A store of each kind, in a program that spawns nothing."""
    open_world()
    return KINDS[request.param]()


class TestEveryKind:
    def test_set_and_get(self, store: dist.Store) -> None:
        store.set("a", "text ü")
        store.set("b", b"\x00\xff")
        store.set("a", "")
        assert (store.get("a"), store.get("b")) == (b"", b"\x00\xff")

    def test_add_counts_in_decimal(self, store: dist.Store) -> None:
        assert [store.add("n", 5), store.add("n", -7), store.add("n", 0)] == [5, -2, -2]
        assert store.get("n") == b"-2"
        store.set("n", "40")
        assert store.add("n", 2) == 42
        store.set("n", "many")
        with pytest.raises(ValueError, match=r"add\(\): the value of key '.*n', b'many', is not a number"):
            store.add("n", 1)

    def test_compare_set(self, store: dist.Store) -> None:
        assert store.compare_set("k", "old", "new") == b"old"  # there is no such key, and PyTorch answers this
        assert not store.check(["k"])
        assert store.compare_set("k", "", "first") == b"first"
        assert store.compare_set("k", "", "second") == b"first"
        assert store.compare_set("k", "other", "second") == b"first"
        assert store.compare_set("k", "first", "second") == b"second"
        assert store.get("k") == b"second"

    def test_keys(self, store: dist.Store) -> None:
        store.multi_set(["b", "a"], ["1", b"2"])
        store.append("a", "3")
        store.append("c", "4")
        assert store.multi_get(["a", "b", "c"]) == [b"23", b"1", b"4"]
        assert store.check(["a", "b", "c"])
        assert not store.check(["a", "z"])
        assert store.check([])
        its_own = isinstance(store, dist.FileStore)
        assert (store.num_keys() - its_own, store.list_keys()) == (3, ["a", "b", "c"])
        assert (store.delete_key("b"), store.delete_key("b")) == (True, False)
        assert (store.num_keys() - its_own, store.list_keys()) == (2, ["a", "c"])
        store.wait(["a", "c"])
        store.wait(["a"], timedelta(seconds=1))
        assert store.has_extended_api() != its_own

    def test_queues_are_first_in_first_out(self, store: dist.Store) -> None:
        if isinstance(store, dist.FileStore):
            for call in (
                lambda: store.queue_push("q", "x"),
                lambda: store.queue_pop("q"),
                lambda: store.queue_len("q"),
            ):
                with pytest.raises(NotImplementedError, match="queue support is not implemented"):
                    call()
            return
        for value in ("x", b"y", ""):
            store.queue_push("q", value)
        assert store.queue_len("q") == 3
        assert store.check(["q"])
        assert [store.queue_pop("q"), store.queue_pop("q", block=False), store.queue_pop("q")] == [b"x", b"y", b""]
        assert (store.queue_len("q"), store.queue_len("other")) == (0, 0)
        assert not store.check(["q"])
        with pytest.raises(dist.QueueEmptyError, match="queue is empty"):
            store.queue_pop("q", block=False)

    def test_a_clone_is_the_same_store(self, store: dist.Store) -> None:
        clone = store.clone()
        clone.set("k", "v")
        assert store.get("k") == b"v"

    def test_timeout(self, store: dist.Store) -> None:
        assert store.timeout == timedelta(seconds=300)
        store.set_timeout(timedelta(milliseconds=10))
        assert store.timeout == timedelta(milliseconds=10)

    @pytest.mark.parametrize(
        ("method", "args", "what"),
        [
            ("set", (1, "v"), "a key must be a str, not int"),
            ("set", ("k", 1), "a value must be a str or bytes, not int"),
            ("get", (None,), "a key must be a str, not NoneType"),
            ("add", ("k", "1"), "amount must be an int, not str"),
            ("compare_set", ("k", None, "v"), "a value must be a str or bytes, not NoneType"),
            ("check", ("k",), "keys must be a list of str, not str"),
            ("wait", (["k", 2],), "a key must be a str, not int"),
            ("wait", (["k"], "1 s"), "timeout must be a datetime.timedelta, not str"),
            ("multi_get", (3,), "keys must be a list of str, not int"),
            ("append", ("k", 2.5), "a value must be a str or bytes, not float"),
            ("set_timeout", (None,), "timeout must be a datetime.timedelta, not NoneType"),
        ],
    )
    def test_arguments_of_wrong_types(self, store: dist.Store, method: str, args: tuple[Any, ...], what: str) -> None:
        with pytest.raises(TypeError) as caught:
            getattr(store, method)(*args)
        assert str(caught.value) == f"{method}(): incompatible function arguments: {what}"

    def test_multi_set_needs_as_many_values_as_keys(self, store: dist.Store) -> None:
        with pytest.raises(dist.DistStoreError, match="multiSet keys and values vectors must be of same size"):
            store.multi_set(["a", "b"], ["1"])

    @pytest.mark.parametrize("timeout", [5, 1.5, True, "5", None])
    def test_a_timeout_is_a_timedelta(self, store: dist.Store, timeout: Any) -> None:
        with pytest.raises(TypeError, match=r"set_timeout\(\): incompatible function arguments"):
            store.set_timeout(timeout)
        if timeout is not None:
            with pytest.raises(TypeError, match=r"wait\(\): incompatible function arguments"):
                store.wait(["a"], timeout)


@pytest.mark.parametrize("world_size", WORLD_SIZES)
class TestRanksMeet:
    def test_every_rank_sees_what_every_rank_set(self, open_world: OpenWorld, world_size: int) -> None:
        open_world(SIXTY_FOUR)

        def program(rank: int) -> list[bytes]:
            store = tcp(rank, world_size)
            store.set(f"key{rank}", f"value{rank}")
            return store.multi_get([f"key{r}" for r in range(world_size)])

        values = [f"value{r}".encode() for r in range(world_size)]
        assert on_ranks(world_size, program) == [values] * world_size

    def test_the_master_waits_for_all_and_has_a_key_for_it(self, open_world: OpenWorld, world_size: int) -> None:
        open_world(SIXTY_FOUR)

        def program(rank: int) -> int | None:
            if rank == world_size - 1:
                dist.HashStore().check([])  # it comes later than the others
            store = tcp(rank, world_size)
            return store.num_keys() if rank == 0 else None

        assert on_ranks(world_size, program)[0] == 1

    def test_add_counts_every_rank_once(self, open_world: OpenWorld, world_size: int) -> None:
        open_world(SIXTY_FOUR)

        def program(rank: int) -> tuple[int, int]:
            return tcp(rank, world_size).add("n", rank + 1), host_time()

        answers = on_ranks(world_size, program)
        steps = sorted(count for count, _ in answers)
        assert steps[-1] == world_size * (world_size + 1) // 2
        assert len(set(steps)) == world_size
        open_world(SIXTY_FOUR)
        assert on_ranks(world_size, program) == answers, "the same program in a new World takes the same course"

    def test_a_file_is_a_place_to_meet(self, open_world: OpenWorld, world_size: int) -> None:
        open_world(SIXTY_FOUR)
        spellings = ["/tmp/x/store", "/tmp/x/../x/store", "/tmp//x/store"]

        def program(rank: int) -> bytes:
            store = dist.FileStore(spellings[rank % 3], world_size)
            if rank == world_size - 1:
                store.set("k", "v")
            return store.get("k")

        assert on_ranks(world_size, program) == [b"v"] * world_size

    def test_those_that_came_first_pop_first(self, open_world: OpenWorld, world_size: int) -> None:
        open_world(SIXTY_FOUR)

        def program(rank: int) -> bytes | None:
            store = tcp(rank, world_size)
            if rank > 0:
                for _ in range(rank):
                    store.check([])  # the higher the rank, the later
                return store.queue_pop("q")
            for _ in range(2 * world_size):
                store.check([])
            for r in range(1, world_size):
                store.queue_push("q", str(r))
            return None

        assert on_ranks(world_size, program)[1:] == [str(r).encode() for r in range(1, world_size)]


class TestTime:
    def test_a_wait_ends_when_the_key_is_set(self, open_world: OpenWorld) -> None:
        open_world()

        def program(rank: int) -> int:
            store = dist.FileStore("f")
            if rank == 0:
                store.wait(["a", "b"], timedelta(seconds=1))
            else:
                store.set("b", "1")
                store.add("a", 1)
            return host_time()

        assert on_ranks(2, program) == [2 * REQUEST, 2 * REQUEST]

    def test_who_asks_again_and_again_leaves_others_time(self, open_world: OpenWorld) -> None:
        open_world()

        def program(rank: int) -> int:
            store = dist.FileStore("f")
            asked = 0
            if rank == 1:
                for _ in range(10):
                    store.num_keys()
                store.set("k", "v")
            while not store.check(["k"]):
                asked += 1
            return asked

        assert on_ranks(2, program) == [11, 0], "of two that come at one moment the lower rank is first"

    @pytest.mark.parametrize(
        ("make", "late_get", "late_wait"),
        [
            (lambda: tcp(0, 1), *["wait timeout after 1500ms, keys: /a, /b"] * 2),
            (lambda: dist.PrefixStore("p", tcp(0, 1)), *["wait timeout after 1500ms, keys: /p/a, /p/b"] * 2),
            (dist.HashStore, "Wait timeout", "Wait timeout"),
            (lambda: dist.FileStore("f"), "Timeout waiting for key: b after 1500 ms", "Wait timeout"),
        ],
    )
    def test_a_timeout_passes_in_simulated_time(
        self, open_world: OpenWorld, make: MakeStore, late_get: str, late_wait: str
    ) -> None:
        open_world()

        def program(rank: int) -> tuple[list[str], int]:
            store = make()
            store.set("a", "there is only this one")
            before = host_time()
            said = []
            store.set_timeout(timedelta(seconds=1.5))
            for wait in (lambda: store.multi_get(["a", "b"]), lambda: store.wait(["a", "b"])):
                with pytest.raises(dist.DistStoreError) as caught:
                    wait()
                said.append(str(caught.value))
            store.set_timeout(timedelta(seconds=77))
            with pytest.raises(dist.DistStoreError) as caught:
                store.wait(["a", "b"], timedelta(seconds=1.5))
            return [*said, str(caught.value)], host_time() - before

        assert on_ranks(1, program) == [([late_get, late_wait, late_wait], 3 * SECOND * 3 // 2)]

    def test_a_pop_times_out_too(self, open_world: OpenWorld) -> None:
        open_world()

        def program(rank: int) -> tuple[str, bytes]:
            store = tcp(rank, 2)
            if rank == 1:
                dist.HashStore().set("later", "")
                for _ in range(30000):
                    store.check([])
                store.queue_push("q", "late")
                return "", b""
            store.set_timeout(timedelta(seconds=1))
            with pytest.raises(dist.DistStoreError) as caught:
                store.queue_pop("q")
            return str(caught.value), store.queue_pop("q")

        assert on_ranks(2, program)[0] == ("wait timeout after 1000ms, keys: /q", b"late")

    def test_a_client_waits_for_its_master(self, open_world: OpenWorld) -> None:
        open_world()

        def program(rank: int) -> tuple[bytes, int]:
            if rank == 0:
                for _ in range(5):
                    dist.HashStore().set("k", "v")
            store = tcp(rank, 2)
            store.set(str(rank), "here")
            return store.get(str(1 - rank)), host_time()

        assert on_ranks(2, program) == [(b"here", 8 * REQUEST)] * 2

    def test_a_client_without_a_master(self, open_world: OpenWorld) -> None:
        open_world()

        def program(rank: int) -> int:
            with pytest.raises(dist.DistNetworkError) as caught:
                dist.TCPStore("node7", 1234, 2, timeout=timedelta(seconds=3))
            expected = "The client socket has timed out after 3000ms while trying to connect to (node7, 1234)."
            assert str(caught.value) == expected
            return host_time()

        assert on_ranks(1, program) == [3 * SECOND]

    def test_a_master_without_its_clients(self, open_world: OpenWorld) -> None:
        open_world()

        def program(rank: int) -> int:
            if rank == 1:
                tcp(rank, 3)
                return 0
            with pytest.raises(dist.DistStoreError) as caught:
                tcp(rank, 3, timeout=timedelta(seconds=4))
            assert str(caught.value) == "Timed out after 4 seconds waiting for clients. 2/3 clients joined."
            return host_time()

        assert on_ranks(2, program) == [4 * SECOND, 0]


class TestDeadlocks:
    """A wait without a limit that nobody can end is reported, with the key and the place."""

    def test_report(self, open_world: OpenWorld) -> None:
        open_world("sips8")

        def program(rank: int) -> None:
            waits: list[Callable[[], Any]] = [
                lambda: dist.FileStore("f").get("k"),
                lambda: dist.HashStore().wait(["k"]),
                lambda: dist.PrefixStore("p", dist.HashStore()).queue_pop("q"),
                lambda: dist.TCPStore("node7", 1234),
                lambda: dist.TCPStore("node8", 1234, 3, is_master=True),
            ]
            waits[rank]()

        errors = failures(5, program)
        assert sorted(errors) == [0, 1, 2, 3, 4]
        assert all(isinstance(e, DeadlockError) for e in errors.values())
        first, *lines = str(errors[0]).splitlines()
        assert first == "deadlock at simulated time 50us: no rank can run and no operation is in progress"
        start = program.__code__.co_firstlineno + 2
        assert lines == [
            f"  rank {rank} waits for {what} at {__file__}:{start + rank} in <lambda>"
            for rank, what in enumerate(
                [
                    "key 'k' of FileStore(f), which nobody has set,",
                    "key 'k' of HashStore(), which nobody has set,",
                    "something to pop from queue 'p/q' of HashStore()",
                    "the master of TCPStore(node7, 1234), which is not there,",
                    "the clients of TCPStore(node8, 1234), of which 1 of 3 are there,",
                ]
            )
        ]

    def test_outside_of_any_spawn(self, open_world: OpenWorld) -> None:
        open_world()
        with pytest.raises(DeadlockError, match=r"rank 0 waits for key 'k' of HashStore\(\), which nobody has set, at"):
            dist.HashStore().get("k")


class TestPlaces:
    def test_a_port_has_one_master(self, open_world: OpenWorld) -> None:
        open_world()
        store = dist.TCPStore("localhost", 29500, is_master=True)
        with pytest.raises(dist.DistNetworkError, match=r"port: 29500, .* name: EADDRINUSE"):
            dist.TCPStore("127.0.0.1", 29500, is_master=True)
        store.set("k", "v")
        assert dist.TCPStore("0.0.0.0", 29500).get("k") == b"v"
        tenant = dist.TCPStore("localhost", 29500, is_master=True, multi_tenant=True)
        assert tenant.get("k") == b"v"

    def test_a_port_is_free_once_its_master_is_gone(self, open_world: OpenWorld) -> None:
        open_world()
        dist.TCPStore("localhost", 29500, is_master=True).set("k", "v")
        assert not dist.TCPStore("localhost", 29500, is_master=True).check(["k"])

    def test_port_0_is_any_that_is_free(self, open_world: OpenWorld) -> None:
        open_world()
        stores = [dist.TCPStore("localhost", 0, 1, is_master=True) for _ in range(3)]
        assert len({store.port for store in stores}) == 3
        stores[1].set("k", "v")
        assert dist.TCPStore(stores[1].host, stores[1].port).get("k") == b"v"

    def test_hosts_are_different_places(self, open_world: OpenWorld) -> None:
        open_world()
        stores = [dist.TCPStore(host, 29500, is_master=True) for host in ("a", "b")]
        stores[0].set("k", "v")
        assert not stores[1].check(["k"])

    @pytest.mark.parametrize("port", [-1, 65536])
    def test_a_port_that_cannot_be(self, open_world: OpenWorld, port: int) -> None:
        open_world()
        with pytest.raises(TypeError, match=f"a port is from 0 to 65535, not {port}"):
            dist.TCPStore("localhost", port)

    def test_a_hash_store_belongs_to_the_rank_that_made_it(self, open_world: OpenWorld) -> None:
        open_world()
        shared = dist.HashStore()

        def program(rank: int) -> tuple[bytes, bool]:
            own = dist.HashStore()
            if rank == 0:
                own.set("k", "v")
                shared.set("k", "v")
            return shared.get("k"), own.check(["k"])

        assert on_ranks(2, program) == [(b"v", True), (b"v", False)]

    def test_ranks_find_what_the_program_that_spawned_them_made(self, open_world: OpenWorld) -> None:
        open_world()
        outer = dist.TCPStore("localhost", 29500, is_master=True)
        outer.set("from outside", "v")

        def program(rank: int) -> bytes:
            store = dist.TCPStore("localhost", 29500)
            store.set(str(rank), "here")
            return store.get("from outside")

        assert on_ranks(2, program) == [b"v", b"v"]
        assert outer.list_keys() == ["0", "1", "from outside"]

    def test_spawns_do_not_find_each_others(self, open_world: OpenWorld) -> None:
        open_world()

        def program(rank: int) -> bool:
            store = dist.FileStore("f")
            found = store.check(["k"])
            store.set("k", "v")
            return found

        assert on_ranks(1, program) == [False]
        assert on_ranks(1, program) == [False]


class TestPrefixStore:
    def test_prefixes_nest(self, open_world: OpenWorld) -> None:
        open_world()
        bottom = dist.HashStore()
        inner = dist.PrefixStore("in", bottom)
        outer = dist.PrefixStore("out", inner)
        outer.set("k", "v")
        bottom.set("inside", "")
        assert bottom.list_keys() == ["in/out/k", "inside"]
        assert (inner.list_keys(), outer.list_keys()) == (["out/k"], ["k"])
        assert outer.num_keys() == 2
        assert outer.underlying_store is inner
        assert outer._underlying_non_prefix_store is bottom

    def test_it_needs_a_store(self) -> None:
        with pytest.raises(TypeError, match="store must be a Store, not dict"):
            dist.PrefixStore("p", {})  # type: ignore[arg-type]

    def test_over_a_store_of_the_programs_own(self) -> None:
        class Recorder(dist.Store):
            def __init__(self) -> None:
                self.sets: list[tuple[str, str | bytes]] = []

            def set(self, key: str, value: str | bytes) -> None:
                self.sets.append((key, value))

        recorder = Recorder()
        store = dist.PrefixStore("p", recorder)
        store.set("k", "v")
        assert recorder.sets == [("p/k", "v")]
        with pytest.raises(NotImplementedError, match="Recorder does not define get"):
            store.get("k")
        assert recorder.timeout == timedelta(seconds=300)


@pytest.mark.parametrize("schedule", ["random", "pct"])
@pytest.mark.parametrize("seed", range(5))
def test_results_do_not_depend_on_who_runs_first(open_world: OpenWorld, schedule: str, seed: int) -> None:
    world = open_world("sips8")
    world.schedule, world.seed = schedule, seed

    def program(rank: int) -> tuple[list[bytes], bytes]:
        store = tcp(rank, 8)
        store.set(str(rank), f"rank {rank}")
        if rank == 0:
            for r in range(1, 8):
                store.queue_push(f"for {r}", str(r))
        mine = store.queue_pop(f"for {rank}") if rank else b""
        store.add("done", 1)
        while store.add("done", 0) < 8:
            pass
        return store.multi_get([str(r) for r in range(8)]), mine

    values = [f"rank {r}".encode() for r in range(8)]
    assert on_ranks(8, program) == [(values, str(r).encode() if r else b"") for r in range(8)]
