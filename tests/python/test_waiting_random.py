"""Random programs on parts of shared tensors that cannot deadlock: none is reported, and data are as in NumPy.

A program is written down in one order of all ranks' calls, in which each call could end before the next one begins but
for messages and collectives that are waited for later. So the real system has one way at least to run it to its end,
and no call looks at, or changes, what something under way changes.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from conftest import OpenWorld
from ranks import on_ranks

import torchemu as torch
import torchemu.distributed as dist

ROWS, COLUMNS = 7, 6

Part = tuple[slice, slice]


@dataclass
class Use:
    """What is under way on a part of a rank's tensor."""

    mask: np.ndarray
    writes: bool
    ends: Callable[[], bool] = lambda: True  # whether all others have done what it needs
    result: Callable[[], np.ndarray] | None = None  # what it writes


@dataclass
class Side:
    """One rank: its calls, what they make of its tensor, and what is under way, by number."""

    calls: list[tuple[Any, ...]]
    state: np.ndarray
    under_way: dict[int, Use] = field(default_factory=dict)
    collectives: int = 0  # that it has called

    def allows(self, part: Part, writes: bool) -> bool:
        """Whether the program may use a part now."""
        mask = marked(part)
        return not any((mask & use.mask).any() and (writes or use.writes) for use in self.under_way.values())

    def given(self, part: Part | None, shape: tuple[int, ...]) -> np.ndarray:
        """The elements of a part; of memory of its own, ones."""
        return np.ones(shape, np.int64) if part is None else self.state[part].copy()


@dataclass
class Message:
    source: int
    target: int
    shape: tuple[int, ...]
    sent: np.ndarray | None = None
    asked: bool = False


@dataclass
class Collective:
    root: int | None  # of a broadcast; None: a sum
    shape: tuple[int, ...]
    given: dict[int, np.ndarray] = field(default_factory=dict)

    def result(self) -> np.ndarray:
        if self.root is not None:
            return self.given[self.root]
        return np.sum(list(self.given.values()), axis=0, dtype=np.int64)


def marked(part: Part | None) -> np.ndarray:
    mask = np.zeros((ROWS, COLUMNS), bool)
    if part is not None:
        mask[part] = True
    return mask


class Writer:
    """Writes a program for so many ranks."""

    def __init__(self, rng: random.Random, ranks: int) -> None:
        self.rng, self.ranks = rng, ranks
        start = np.arange(ROWS * COLUMNS).reshape(ROWS, COLUMNS)
        self.sides = [Side([], start + 1000 * r) for r in range(ranks)]
        self.number = 0
        self.messages: list[tuple[int, Message]] = []  # of which one side is missing
        self.collectives: list[tuple[int, Collective]] = []

    def write(self, steps: int) -> list[Side]:
        kinds = [self.message, self.message, self.answer, self.collective, self.local, self.read, self.end, self.end]
        for _ in range(steps):
            self.rng.choice(kinds)()
        while any(side.under_way for side in self.sides) or self.messages:
            self.answer(last=True)
            for _ in range(self.ranks):
                self.collective(new=False)
                self.end()
        return self.sides

    def part(self, shape: tuple[int, ...] | None = None, whole_rows: bool = False) -> Part:
        """A box, of a shape perhaps, or every other row or column of one."""
        slices = []
        for axis, room in enumerate((ROWS, COLUMNS)):
            step = self.rng.choice([1, 1, 2]) if not whole_rows else 1
            n = self.rng.randint(1, (room + step - 1) // step) if shape is None else shape[axis]
            if whole_rows and axis == 1:
                n = room
            if (n - 1) * step >= room:
                step = 1
            first = self.rng.randrange(room - (n - 1) * step)
            slices.append(slice(first, first + (n - 1) * step + 1, step))
        return slices[0], slices[1]

    def free_part(self, rank: int, writes: bool, **about: Any) -> Part | None:
        for _ in range(20):
            part = self.part(**about)
            if self.sides[rank].allows(part, writes):
                return part
        return None

    def message(self) -> None:
        """One side of a message."""
        source, target = self.rng.sample(range(self.ranks), 2)
        sends = self.rng.random() < 0.5
        part = self.free_part(source if sends else target, writes=not sends)
        if part is not None:
            message = Message(source, target, marked(part)[part].shape)
            self.number += 1
            self._post(self.number, message, sends, part)
            self.messages.append((self.number, message))

    def answer(self, last: bool = False) -> None:
        """The other side of one; where no part is free and it is to be done, on memory of its own."""
        if not self.messages:
            return
        i = self.rng.randrange(len(self.messages))
        number, message = self.messages[i]
        sends = message.sent is None
        part = self.free_part(message.source if sends else message.target, not sends, shape=message.shape)
        if part is not None or last:
            del self.messages[i]
            self._post(number, message, sends, part)

    def _post(self, number: int, message: Message, sends: bool, part: Part | None) -> None:
        mine, other = message.source, message.target
        if not sends:
            mine, other = other, mine
        side = self.sides[mine]

        def met() -> bool:
            return message.sent is not None and message.asked

        if sends:
            message.sent = side.given(part, message.shape)
            side.under_way[number] = Use(marked(part), False, met)
        else:
            message.asked = True
            side.under_way[number] = Use(marked(part), True, met, lambda: message.sent)
        side.calls.append(("send" if sends else "recv", number, (part, message.shape), other))

    def collective(self, new: bool = True) -> None:
        """A rank calls its next collective, or begins a new one."""
        rank = self.rng.randrange(self.ranks)
        side = self.sides[rank]
        if side.collectives == len(self.collectives):
            if not new:
                return
            rows = self.rng.randint(1, 3)
            root = self.rng.choice([None, None, self.rng.randrange(self.ranks)])
            self.number += 1
            self.collectives.append((self.number, Collective(root, (rows, COLUMNS))))
        number, which = self.collectives[side.collectives]
        part = self.free_part(rank, True, shape=which.shape, whole_rows=True)
        if part is None and new:
            return
        side.collectives += 1
        which.given[rank] = side.given(part, which.shape)
        side.under_way[number] = Use(marked(part), True, lambda: len(which.given) == self.ranks, which.result)
        side.calls.append(("collective", number, (part, which.shape), which.root))

    def local(self) -> None:
        """A computation."""
        rank = self.rng.randrange(self.ranks)
        side = self.sides[rank]
        target = self.free_part(rank, True)
        if target is None:
            return
        shape = marked(target)[target].shape
        source = self.free_part(rank, False, shape=shape)
        if source is None or self.rng.random() < 0.5:
            side.state[target] = 3 * side.state[target] % 1009
            side.calls.append(("compute", target))
        elif not (marked(target) & marked(source)).any():
            side.state[target] = side.state[source]
            side.calls.append(("copy", target, source))

    def read(self) -> None:
        """A look at elements."""
        rank = self.rng.randrange(self.ranks)
        side = self.sides[rank]
        part = self.free_part(rank, False)
        if part is not None:
            side.calls.append(("read", part, self.rng.randrange(len(READS)), side.state[part].copy()))

    def end(self) -> None:
        """A rank waits for something that can end."""
        side = self.rng.choice(self.sides)
        over = [number for number, use in side.under_way.items() if use.ends()]
        if over:
            number = self.rng.choice(over)
            use = side.under_way.pop(number)
            if use.result is not None and use.mask.any():
                side.state[use.mask] = use.result().reshape(-1)
            side.calls.append(("wait", number))


READS: list[Callable[[Any], Any]] = [
    lambda t: t.numpy(),
    lambda t: np.array(t.tolist()),
    lambda t: (t * 1).numpy(),
    lambda t: np.array([[x.item() for x in row] for row in t]),
    lambda t: t.clone().cpu().numpy(),
]


@dataclass
class Player:
    """Makes a rank's calls."""

    x: Any
    works: dict[int, Any] = field(default_factory=dict)

    def play(self, side: Side) -> None:
        for call, *args in side.calls:
            getattr(self, call)(*args)
        assert not self.works
        assert np.array_equal(self.x.numpy(force=True), side.state)

    def at(self, part: Part | None, shape: tuple[int, ...]) -> Any:
        """A part, or memory of its own."""
        return self.x[part] if part is not None else torch.ones(shape, dtype=torch.int64, device=self.x.device)

    def send(self, number: int, place: tuple[Part | None, tuple[int, ...]], peer: int) -> None:
        self.works[number] = dist.isend(self.at(*place), peer, tag=number)

    def recv(self, number: int, place: tuple[Part | None, tuple[int, ...]], peer: int) -> None:
        self.works[number] = dist.irecv(self.at(*place), peer, tag=number)

    def collective(self, number: int, place: tuple[Part | None, tuple[int, ...]], root: int | None) -> None:
        t = self.at(*place)
        reduces = root is None
        self.works[number] = dist.all_reduce(t, async_op=True) if reduces else dist.broadcast(t, root, async_op=True)

    def compute(self, part: Part) -> None:
        self.x[part] *= 3
        self.x[part] %= 1009

    def copy(self, target: Part, source: Part) -> None:
        self.x[target] = self.x[source]

    def read(self, part: Part, how: int, expected: np.ndarray) -> None:
        assert np.array_equal(READS[how](self.x[part]), expected)

    def wait(self, number: int) -> None:
        self.works.pop(number).wait()


@pytest.mark.parametrize("device", ["cpu", "cuda"])
@pytest.mark.parametrize("seed", range(40))
def test_random_programs(open_world: OpenWorld, seed: int, device: str) -> None:
    print("seed", seed)
    rng = random.Random(seed)
    ranks = rng.choice([2, 3, 4])
    sides = Writer(rng, ranks).write(steps=rng.choice([30, 100, 250]))

    def program(rank: int) -> None:
        dist.init_process_group("nccl" if device == "cuda" else "gloo")
        start = np.arange(ROWS * COLUMNS).reshape(ROWS, COLUMNS) + 1000 * rank
        Player(torch.tensor(start, device=device)).play(sides[rank])

    open_world(f"name: some\nsystem: {{sips: {{count: {ranks}}}}}\n")
    on_ranks(ranks, program)
