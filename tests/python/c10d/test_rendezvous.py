"""Rendezvous: how ranks come by a store, their rank and the world size."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from conftest import OpenWorld
from ranks import on_ranks

import torchemu.distributed as dist


@pytest.mark.parametrize("world_size", [1, 2, 7])
@pytest.mark.parametrize("url", ["tcp://localhost:29500", "file:///tmp/meeting", "env://"])
def test_all_ranks_get_the_same_store(
    open_world: OpenWorld, monkeypatch: pytest.MonkeyPatch, url: str, world_size: int
) -> None:
    open_world("sips8")
    monkeypatch.setenv("MASTER_ADDR", "localhost")
    monkeypatch.setenv("MASTER_PORT", "29500")

    def program(rank: int) -> list[bytes]:
        meeting = dist.rendezvous(url, rank, world_size)
        store, r, size = next(meeting)
        assert (r, size) == (rank, world_size)
        store.set(str(rank), f"rank {rank}")
        with pytest.raises(RuntimeError, match=r"Unable to perform re-?rendezvous using (tcp|file|env):// method"):
            next(meeting)
        return store.multi_get([str(i) for i in range(world_size)])

    expected = [f"rank {r}".encode() for r in range(world_size)]
    assert on_ranks(world_size, program) == [expected] * world_size


def test_rank_and_size_from_the_environment(open_world: OpenWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    open_world()
    for name, value in {"RANK": "0", "WORLD_SIZE": "1", "MASTER_ADDR": "h", "MASTER_PORT": "5"}.items():
        monkeypatch.setenv(name, value)
    store, rank, world_size = next(dist.rendezvous("env://"))
    assert isinstance(store, dist.TCPStore)
    assert (rank, world_size, store.host, store.port) == (0, 1, "h", 5)


def test_the_timeout_is_the_stores(open_world: OpenWorld) -> None:
    open_world()
    store, _, _ = next(dist.rendezvous("tcp://localhost:29500?rank=0&world_size=1", timeout=timedelta(seconds=9)))
    assert store.timeout == timedelta(seconds=9)


@pytest.mark.parametrize(
    ("url", "missing"),
    [
        ("tcp://localhost?rank=0&world_size=1", "port number missing"),
        ("tcp://localhost:1?world_size=1", "rank parameter missing"),
        ("tcp://localhost:1?rank=0", "world size parameter missing"),
        ("file://", "path missing"),
        ("file:///tmp/f?world_size=1", "rank parameter missing"),
        ("file:///tmp/f?rank=0", "world size parameter missing"),
        ("env://", "environment variable RANK expected, but not set"),
        ("env://?rank=0", "environment variable WORLD_SIZE expected, but not set"),
        ("env://?rank=0&world_size=1", "environment variable MASTER_ADDR expected, but not set"),
    ],
)
def test_what_is_missing(open_world: OpenWorld, monkeypatch: pytest.MonkeyPatch, url: str, missing: str) -> None:
    open_world()
    for name in ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"):
        monkeypatch.delenv(name, raising=False)
    meeting = dist.rendezvous(url)
    scheme = url.partition(":")[0]
    with pytest.raises(ValueError, match=r"^Error initializing torch\.distributed using ") as caught:
        next(meeting)
    assert str(caught.value) == f"Error initializing torch.distributed using {scheme}:// rendezvous: {missing}"


def test_arguments() -> None:
    with pytest.raises(RuntimeError, match="`url` must be a string"):
        dist.rendezvous(3)  # type: ignore[arg-type]
    with pytest.raises(RuntimeError, match=r"`rank` must be an integer\. zero"):
        dist.rendezvous("tcp://h:1", rank="zero")  # type: ignore[arg-type]
    with pytest.raises(RuntimeError, match=r"`world_size` must be an integer\. None"):
        dist.rendezvous("tcp://h:1", world_size=None)  # type: ignore[arg-type]


def test_given_twice_and_unknown(open_world: OpenWorld) -> None:
    open_world()
    with pytest.raises(AssertionError, match=r"has node-specific arguments\(rank, world_size\) already"):
        dist.rendezvous("tcp://h:1?rank=0", rank=0)
    with pytest.raises(RuntimeError, match="No rendezvous handler for pigeon://"):
        dist.rendezvous("pigeon://coop")


def test_every_rank_registers_handlers_of_its_own(open_world: OpenWorld) -> None:
    open_world()

    def handler(url: str, **options: Any) -> Any:
        yield dist.HashStore(), 3, options["size"]

    def program(rank: int) -> tuple[int, int]:
        dist.register_rendezvous_handler("pigeon", handler)
        with pytest.raises(RuntimeError, match="Rendezvous handler for pigeon:// already registered"):
            dist.register_rendezvous_handler("pigeon", handler)
        return next(dist.rendezvous("pigeon://coop", size=rank))[1:]

    assert on_ranks(2, program) == [(3, 0), (3, 1)]


def test_a_port_that_cannot_be(open_world: OpenWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    open_world()
    monkeypatch.setenv("MASTER_ADDR", "localhost")
    monkeypatch.setenv("MASTER_PORT", "70000")
    with pytest.raises(ValueError, match="port must have value from 0 to 65535 but was 70000"):
        next(dist.rendezvous("env://", rank=0, world_size=1))


@pytest.mark.parametrize("world_size", [2, 7])
@pytest.mark.parametrize("by_hand", [False, True], ids=["tcp://", "TCPStore"])
def test_groups_are_made_again_at_the_same_port(open_world: OpenWorld, world_size: int, by_hand: bool) -> None:
    """A rank that leaves sooner comes to the store that its master has not closed yet: it is one of the next's."""
    open_world("sips8")

    def program(rank: int) -> list[bytes]:
        seen = []
        for time in range(4):
            if by_hand:
                store = dist.TCPStore("localhost", 2345, world_size, rank == 0)
                dist.init_process_group("gloo", store=store, rank=rank, world_size=world_size)
            else:
                dist.init_process_group("gloo", "tcp://localhost:2345", rank=rank, world_size=world_size)
                store = dist.distributed_c10d._get_default_store()
            if rank == world_size - 1:
                store.set("time", str(time))
            dist.barrier()
            seen.append(store.get("time"))
            dist.barrier()
            dist.destroy_process_group()
            del store
        return seen

    assert on_ranks(world_size, program) == [[b"0", b"1", b"2", b"3"]] * world_size
