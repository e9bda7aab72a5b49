"""Collectives of Python objects."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
from conftest import OpenWorld
from ranks import SIXTY_FOUR, failures, on_ranks

import torchemu as torch
import torchemu.distributed as dist
from torchemu.errors import MismatchError
from torchemu.runtime.waiting import host_time

pytestmark = pytest.mark.shows("PyTorch: collectives of objects")

WORLD_SIZES = [1, 2, 3, 4, 7, 8, 16, 64]


@dataclasses.dataclass
class Thing:
    """An object of a class of the program's."""

    number: int
    text: str


def thing(rank: int) -> Any:
    """An object for each rank, of another size and type on each."""
    kinds = [
        rank,
        "ä" * 50 * rank,
        None,
        Thing(rank, "x" * rank),
        {"a": [rank, (1.5, rank)]},
        b"",
        [float("inf")] * rank,
    ]
    return kinds[rank % len(kinds)]


@pytest.mark.parametrize("world_size", WORLD_SIZES)
def test_all_kinds(open_world: OpenWorld, world_size: int) -> None:
    open_world(SIXTY_FOUR)
    n, last = world_size, world_size - 1
    things = [thing(r) for r in range(n)]

    def program(rank: int) -> None:
        dist.init_process_group("gloo")
        gathered: list[Any] = [None] * n
        dist.all_gather_object(gathered, thing(rank))
        assert gathered == things
        at_last = [None] * n if rank == last else None
        dist.gather_object(thing(rank), at_last, dst=last)
        assert at_last == (things if rank == last else None)
        given = [thing(r + 1) for r in range(5)] if rank == last else [0] * 5
        dist.broadcast_object_list(given, src=last)
        assert given == [thing(r + 1) for r in range(5)]
        room = ["old", "kept"]
        dist.scatter_object_list(room, things if rank == last else None, src=last)
        assert room == [thing(rank), "kept"]

    on_ranks(n, program)


def test_in_a_group(open_world: OpenWorld) -> None:
    open_world("default")

    def program(rank: int) -> Any:
        dist.init_process_group()
        group = dist.new_group([1, 3])
        if rank not in (1, 3):
            return None
        gathered = [None, None]
        dist.all_gather_object(gathered, rank, group)
        at_three = [None, None] if rank == 3 else None
        dist.gather_object(rank, at_three, 3, group)
        given, other, room = [rank], [rank], [None]
        dist.broadcast_object_list(given, 3, group)
        dist.broadcast_object_list(other, group=group, group_src=0)
        dist.scatter_object_list(room, ["one", "three"] if rank == 1 else None, 1, group)
        return gathered, at_three, given, other, room

    one, three = ([1, 3], None, [3], [1], ["one"]), ([1, 3], [1, 3], [3], [1], ["three"])
    assert on_ranks(4, program) == [None, one, None, three]


def test_messages(open_world: OpenWorld) -> None:
    open_world("default")

    def program(rank: int) -> Any:
        dist.init_process_group()
        group = dist.new_group([2, 3])
        if rank == 0:
            dist.send_object_list([thing(3), thing(4)], 1)
            return dist.send_object_list(["any"], 1, use_batch=True)
        if rank == 2:
            return dist.send_object_list([thing(6)], group=group, group_dst=1)
        if rank == 3:
            got = [None]
            return dist.recv_object_list(got, group_src=0, group=group), got
        got, other = [1, 2], [3]
        return dist.recv_object_list(got, 0), got, dist.recv_object_list(other, weights_only=True), other

    assert on_ranks(4, program) == [None, (0, [thing(3), thing(4)], 0, ["any"]), None, (2, [thing(6)])]


def test_tensors_in_objects(open_world: OpenWorld) -> None:
    open_world("sips2")

    def program(rank: int) -> Any:
        dist.init_process_group()
        gathered: list[Any] = [None, None]
        dist.all_gather_object(gathered, {"t": torch.full((2,), float(rank)), "a": np.arange(3) + rank})
        return [(g["t"].tolist(), g["a"].tolist()) for g in gathered]

    assert on_ranks(2, program) == [[([0, 0], [0, 1, 2]), ([1, 1], [1, 2, 3])]] * 2


def test_every_rank_has_copies(open_world: OpenWorld) -> None:
    open_world("sips2")
    mine = [[0], [1]]

    def program(rank: int) -> Any:
        dist.init_process_group()
        gathered: list[Any] = [None, None]
        dist.all_gather_object(gathered, mine[rank])
        gathered[0].append("changed")
        return gathered

    assert on_ranks(2, program) == [[[0, "changed"], [1]]] * 2
    assert mine == [[0], [1]]


def test_bytes_take_time(open_world: OpenWorld) -> None:
    open_world("sips2")

    def program(rank: int) -> list[int]:
        dist.init_process_group()
        times = []
        for size in (1, 10**6, 2 * 10**6):
            dist.barrier()
            start = host_time()
            dist.all_gather_object([None, None], b"x" * size)
            times.append(host_time() - start)
        return times

    for small, large, larger in on_ranks(2, program):
        assert large > 2 * small
        assert larger - large == pytest.approx(large - small, rel=0.2)


def test_lists_of_other_lengths(open_world: OpenWorld) -> None:
    open_world("sips2")

    def program(rank: int) -> None:
        dist.init_process_group()
        dist.broadcast_object_list([1] * (rank + 1), 0)

    found = failures(2, program)
    assert len(found) == 2
    for error in found.values():
        assert type(error) is MismatchError and "broadcast_object_list of 2 int64 elements, root 0" in str(error)


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: dist.all_gather_object([None], 1), "object_list has room for 1 objects of 2 ranks"),
        (lambda: dist.broadcast_object_list([]), "object_list must not be empty"),
        (lambda: dist.send_object_list([], 1), "object_list must not be empty"),
        (lambda: dist.recv_object_list([], 1), "object_list must not be empty"),
        (
            lambda: dist.scatter_object_list([0], [1]),
            "scatter_object_input_list must have an object for each of 2 ranks",
        ),
        (lambda: dist.gather_object(1, [0, 0], 1), "``gather_list`` must NOT be specified on non-destination ranks"),
    ],
)
def test_wrong_lists(open_world: OpenWorld, call: Any, text: str) -> None:
    open_world("sips2")

    def program(rank: int) -> None:
        dist.init_process_group()
        if rank == 0:
            with pytest.raises(ValueError, match=text):
                call()

    on_ranks(2, program)
