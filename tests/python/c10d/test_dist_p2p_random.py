"""Random programs of messages: who gets what is calculated here, by queues for each pair of ranks and each tag."""

from __future__ import annotations

import random
from collections import defaultdict, deque
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from conftest import OpenWorld
from ranks import SIXTY_FOUR, on_ranks

import torchemu as torch
import torchemu.distributed as dist

TAGS = (0, 1, 7)


@dataclass(frozen=True)
class Message:
    """A message from one rank to another: so many numbers from a first one on."""

    source: int
    destination: int
    tag: int
    first: int
    length: int

    def numbers(self) -> np.ndarray:
        return np.arange(self.first, self.first + self.length, dtype=np.int32)


def programs(seed: int, ranks: int) -> tuple[list[list[Any]], list[list[np.ndarray]]]:
    """For each rank what it posts, in order: messages to send, or (source, tag, length) to receive; and what arrives.

    A rank posts what it sends and what it receives in orders of their own, shuffled but for messages of one pair and
    tag, which meet in order; their lengths may differ.
    """
    rng = random.Random(seed)
    sent = [
        Message(
            s, rng.choice([d for d in range(ranks) if d != s]), rng.choice(TAGS), rng.randrange(1000), rng.randrange(6)
        )
        for s in range(ranks)
        for _ in range(rng.randrange(5))
    ]
    queues: dict[tuple[int, int, int], deque[Message]] = defaultdict(deque)
    for message in sent:
        queues[message.source, message.destination, message.tag].append(message)
    posts: list[list[Any]] = [[m for m in sent if m.source == r] for r in range(ranks)]
    arrive: list[list[np.ndarray]] = [[] for _ in range(ranks)]
    coming = [[m for m in sent if m.destination == r] for r in range(ranks)]
    for r, list_of in enumerate(coming):
        rng.shuffle(list_of)
        for chosen in list_of:
            message = queues[chosen.source, r, chosen.tag].popleft()
            posts[r].insert(rng.randrange(len(posts[r]) + 1), None)
            arrive[r].append(message.numbers())
            at = posts[r].index(None)
            posts[r][at] = (message.source, message.tag, message.length, len(arrive[r]) - 1)
    return posts, arrive


def in_order(posts: list[Any]) -> list[Any]:
    """Receives of a rank in the order in which their messages were counted: of one sender and tag that is theirs."""
    places = [i for i, p in enumerate(posts) if isinstance(p, tuple)]
    receives = sorted((posts[i] for i in places), key=lambda p: p[3])
    posts = list(posts)
    for place, receive in zip(places, receives, strict=True):
        posts[place] = receive
    return posts


@pytest.mark.parametrize("schedule", ["fifo", "random", "pct"])
@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("ranks", [2, 5, 64])
@pytest.mark.parametrize("batch", [False, True], ids=["one by one", "as a batch"])
def test_every_message_arrives_where_it_should(
    open_world: OpenWorld, ranks: int, seed: int, schedule: str, batch: bool
) -> None:
    world = open_world(SIXTY_FOUR)
    world.schedule, world.seed = schedule, seed
    posts, arrive = programs(seed, ranks)

    def program(rank: int) -> list[np.ndarray]:
        dist.init_process_group("gloo")
        operations, received = [], []
        for post in in_order(posts[rank]):
            if isinstance(post, Message):
                operations.append(
                    dist.P2POp(dist.isend, torch.from_numpy(post.numbers()), post.destination, tag=post.tag)
                )
            else:
                source, tag, length, _ = post
                received.append(torch.full((length,), -1, dtype=torch.int32))
                operations.append(dist.P2POp(dist.irecv, received[-1], source, tag=tag))
        if batch:
            works = dist.batch_isend_irecv(operations) if operations else []
        else:
            works = [o.op(o.tensor, o.peer, tag=o.tag) for o in operations]
        for work in works:
            assert work.wait()
        return [np.array(t.numpy()) for t in received]

    for rank, got in enumerate(on_ranks(ranks, program)):
        assert len(got) == len(arrive[rank])
        for i, (a, b) in enumerate(zip(got, arrive[rank], strict=True)):
            assert np.array_equal(a, b), f"message {i} of rank {rank}, seed {seed}: {a} and not {b}"


@pytest.mark.parametrize("schedule", ["fifo", "random", "pct"])
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("ranks", [2, 5, 64])
def test_from_anybody(open_world: OpenWorld, ranks: int, seed: int, schedule: str) -> None:
    """Rank 0 gets all messages, each sender's in the order in which they were sent, and knows whose they are."""
    world = open_world(SIXTY_FOUR)
    world.schedule, world.seed = schedule, seed
    rng = random.Random(seed)
    counts = [0, *(rng.randrange(4) for _ in range(ranks - 1))]

    def program(rank: int) -> list[tuple[int, int]]:
        dist.init_process_group("gloo")
        if rank > 0:
            for i in range(counts[rank]):
                dist.send(torch.tensor([100 * rank + i]), 0)
            return []
        got, room = [], torch.zeros(1, dtype=torch.int64)
        for _ in range(sum(counts)):
            got.append((dist.recv(room), int(room.item())))
        return got

    got = on_ranks(ranks, program)[0]
    for rank in range(1, ranks):
        assert [value for sender, value in got if sender == rank] == [100 * rank + i for i in range(counts[rank])]
    assert len(got) == sum(counts)
