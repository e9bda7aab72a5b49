"""Ranks are cooperative: who waits for what, and that nothing is lost while others run."""

from __future__ import annotations

import contextvars
import random
import sys
from typing import Any

import pytest
from conftest import OpenWorld

import torchemu as torch
from torchemu.frontends.numpy._tensor import Tensor

dist = torch.distributed
spawn = torch.multiprocessing.spawn


@pytest.fixture(autouse=True)
def group(open_world: OpenWorld) -> torch.World:
    world = open_world()
    dist.init_process_group()
    return world


# -- what a rank waits for


def test_reading_one_tensor_does_not_wait_for_another() -> None:
    joined: list[int] = []

    def rank(r: int) -> None:
        a, b = torch.full((3,), r, dtype="i64"), torch.full((3,), r, dtype="i64")
        a.wait()
        if r == 0:
            dist.all_reduce(b)
            assert a.tolist() == [0, 0, 0]  # nothing is pending on it
            assert joined == []
        else:
            joined.append(r)
            dist.all_reduce(b)
        assert b.tolist() == [6, 6, 6]

    spawn(rank, nprocs=4)
    assert joined == [1, 2, 3]


def test_reading_an_earlier_collective_does_not_wait_for_a_later_one() -> None:
    events: list[str] = []

    def rank(r: int) -> None:
        a, b = torch.ones(2), torch.ones(2)
        dist.all_reduce(a)
        if r == 0:
            dist.all_reduce(b)
            assert a.tolist() == [4, 4]
            events.append("a was read")
        else:
            a.wait()
            events.append("b is joined")
            dist.all_reduce(b)
        assert b.tolist() == [4, 4]

    spawn(rank, nprocs=4)
    assert events[0] == "a was read" or events.index("a was read") <= 3
    assert sorted(events) == ["a was read"] + ["b is joined"] * 3


def test_copy_waits_for_its_source_and_not_for_its_destination() -> None:
    joined: list[int] = []

    def rank(r: int) -> None:
        others = dist.new_group([1, 2, 3])
        source, target = torch.full((2,), r + 1), torch.full((2,), r + 1)
        dist.all_reduce(source)
        if r == 0:
            dist.all_reduce(target)
            target.copy_(source)  # target is pending until the others join, which takes them a while
            assert joined == []
            source.fill_(-1)  # the copy has the elements as they were
        else:
            for _ in range(10):
                source.wait()
                dist.all_reduce(source, group=others)
            joined.append(r)
            dist.all_reduce(target)
        assert target.tolist() == [10, 10]

    spawn(rank, nprocs=4)
    assert sorted(joined) == [1, 2, 3]


def test_writes_to_a_pending_tensor_come_after() -> None:
    def rank(r: int) -> None:
        t = torch.full((4,), r + 1.0)
        dist.all_reduce(t)
        t[1] = -1
        t[2:].fill_(-2)
        t[3:].copy_(torch.tensor([7.5]))
        dist.all_reduce(t)
        assert t.tolist() == [40, -4, -8, 30]

    spawn(rank, nprocs=4)


def test_views_share_what_is_pending() -> None:
    def rank(r: int) -> None:
        t = torch.ones(4)
        part, other = t[2:], t[:2]
        dist.all_reduce(part)
        assert t.tolist() == [1, 1, 4, 4]
        dist.all_reduce(t)
        assert other.tolist() == [4, 4]
        assert part.tolist() == [16, 16]

    spawn(rank, nprocs=4)


def test_operands_and_indices_are_waited_for() -> None:
    def rank(r: int) -> None:
        t, index = torch.arange(40), torch.tensor([r])
        dist.all_reduce(index)
        assert t[index].tolist() == [6]
        dist.all_reduce(t)
        other = torch.tensor([0])
        dist.all_reduce(other)
        assert (t[:1] == other).tolist() == [True]
        value = torch.tensor([r])
        dist.all_reduce(value)
        t[[0]] = value
        assert t[0].item() == 6

    spawn(rank, nprocs=4)


# -- schedules of ranks


def test_ranks_start_in_order_and_run_until_they_wait() -> None:
    events: list[tuple[int, int]] = []

    def rank(r: int) -> None:
        t = torch.ones(1)
        for step in range(3):
            events.append((step, r))
            dist.all_reduce(t)
            t.wait()

    spawn(rank, nprocs=4)
    assert events[:4] == [(0, 0), (0, 1), (0, 2), (0, 3)]
    assert sorted(events) == [(s, r) for s in range(3) for r in range(4)]
    again, events = events, []
    spawn(rank, nprocs=4)
    assert events == again


@pytest.mark.parametrize("seed", range(8))
def test_ranks_at_different_speeds(seed: int) -> None:
    """Each rank reads tensors at moments of its own; all issue the same collectives, and every result is right."""
    count, world = 30, 4

    def rank(r: int) -> None:
        rng = random.Random(f"{seed} {r}")
        unread: list[tuple[int, Tensor]] = []
        for i in range(count):
            t = torch.full((3,), i * world + r, dtype="i64")
            dist.all_reduce(t)
            unread.append((i, t))
            while unread and rng.random() < 0.5:
                j, early = unread.pop(rng.randrange(len(unread)))
                assert early.tolist() == [world * world * j + 6] * 3, f"seed {seed}, rank {r}, collective {j}"
        for j, late in reversed(unread):
            assert late.tolist() == [world * world * j + 6] * 3, f"seed {seed}, rank {r}, collective {j}"

    spawn(rank, nprocs=world)


@pytest.mark.parametrize("seed", range(4))
def test_a_random_program_is_the_same_as_one_that_always_waits(seed: int) -> None:
    """Collectives, fills and copies on few tensors, so that operations pile up on them."""

    def final(patient: bool) -> list[Any]:
        states: list[Any] = [None] * 4

        def rank(r: int) -> None:
            rng = random.Random(seed)  # the same program on every rank
            own = random.Random(f"{seed} {r}")
            tensors = [torch.full((4,), 10 * i + r, dtype="i64") for i in range(3)]
            for _ in range(60):
                a, b = rng.sample(tensors, 2)
                kind = rng.randrange(5)
                if kind == 0:
                    dist.all_reduce(a, "max")
                elif kind == 1:
                    dist.all_gather_into_tensor(a, b[:1])
                elif kind == 2:
                    a[rng.randrange(4)].fill_(rng.randrange(100) + r)
                elif kind == 3:
                    a.copy_(b)
                else:
                    dist.reduce_scatter_tensor(a[1:2], b)
                if patient or own.random() < 0.1:
                    for t in tensors:
                        t.wait()
            states[r] = [t.tolist() for t in tensors]

        spawn(rank, nprocs=4)
        return states

    assert final(patient=False) == final(patient=True), f"seed {seed}"


def test_what_belongs_to_a_rank_survives_waiting() -> None:
    variable: contextvars.ContextVar[int] = contextvars.ContextVar("variable")

    def deep(r: int, depth: int) -> int:
        return depth if depth == 0 else deep(r, depth - 1) if depth != 50 else waited(r) + deep(r, depth - 1)

    def waited(r: int) -> int:
        t = torch.ones(1)
        dist.all_reduce(t)
        return int(t.item()) - 4

    def numbers(r: int) -> Any:
        for i in range(3):
            yield waited(r) + i

    def rank(r: int) -> None:
        torch.ahbm.set_device(r)
        variable.set(r)
        assert deep(r, 100) == 0
        try:
            raise KeyError(r)
        except KeyError as error:
            assert list(numbers(r)) == [0, 1, 2]
            assert sys.exc_info()[1] is error and error.args == (r,)
        assert (variable.get(), torch.ahbm.current_device(), dist.get_rank()) == (r, r, r)
        assert dist.get_world_size() == 4

    spawn(rank, nprocs=4)
    assert torch.ahbm.current_device() == 0
    assert dist.get_rank() == 0


def test_a_rank_may_end_before_what_it_issued(group: torch.World) -> None:
    def rank(r: int) -> None:
        dist.all_reduce(torch.ones(1000))
        if r == 3:
            sys.exit(0)

    spawn(rank, nprocs=4)
    assert [c["ranks"] for c in group.collectives()] == [4]


def test_spawns_one_after_another_share_the_world(group: torch.World) -> None:
    seen: list[int] = []

    def rank(r: int, t: Tensor, total: int) -> None:
        mine = t[r : r + 1]  # of the program that spawned
        dist.all_reduce(torch.zeros(1).copy_(mine))
        seen.append(int(mine.item()))
        assert total == 4

    t = torch.arange(4)
    for _ in range(3):
        spawn(rank, args=(t, 4), nprocs=4)
    assert sorted(seen) == sorted([0, 1, 2, 3] * 3)
    times = [c["start"] for c in group.collectives()]
    assert times == sorted(times) and len(set(times)) == 3


def test_spawned_ranks_may_make_their_own_group(open_world: OpenWorld) -> None:
    open_world("sips8")

    def rank(r: int, world_size: int) -> None:
        assert not dist.is_initialized()
        dist.init_process_group("nccl", rank=r, world_size=world_size)
        t = torch.full((2,), r)
        dist.all_reduce(t)
        assert t.tolist() == [15, 15]
        assert (dist.get_rank(), dist.get_world_size()) == (r, 6)
        dist.destroy_process_group()
        assert not dist.is_initialized()

    spawn(rank, args=(6,), nprocs=6)
    assert not dist.is_initialized()


def test_shards_of_the_spawning_program_are_not_the_ranks_group(open_world: OpenWorld) -> None:
    open_world("default", "defaults: {world_size: 2}\n")
    dist.init_process_group()

    def rank(r: int) -> None:
        assert not dist.is_initialized()
        dist.init_process_group()
        t = torch.full((1,), r)
        dist.all_reduce(t)
        assert (dist.get_rank(), t.item()) == (r, 1)

    spawn(rank, nprocs=2)
    assert (dist.get_world_size(), dist.get_rank()) == (2, 0)


def test_many_ranks(open_world: OpenWorld) -> None:
    open_world("name: torus\nsystem:\n  sips: {count: 64, connect: torus2d, w: 8, h: 8}\n")
    dist.init_process_group()

    def rank(r: int) -> None:
        t = torch.full((r % 3 + 1,), r)  # different sizes, but of no collective
        both = torch.full((5,), r)
        dist.all_reduce(both)
        out = torch.zeros(64, dtype="i64")
        dist.all_gather_into_tensor(out, both[:1])
        assert out.tolist() == [2016] * 64 and t[0].item() == r

    spawn(rank, nprocs=64)
