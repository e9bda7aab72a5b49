"""Random programs on parts of shared tensors that cannot deadlock: none is reported, and data are as in NumPy.

A program is written down in one order of all ranks' calls, in which each call could end before the next one begins but
for messages and collectives that are waited for later. So the real system has one way at least to run it to its end,
and no call looks at, or changes, what something under way changes.
"""

from __future__ import annotations

import random
from collections import Counter
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


Place = tuple[Part | None, tuple[int, ...]]
"""A part and its shape; None: memory of its own."""


@dataclass
class Use:
    """An operation that is under way on parts of a rank's tensor."""

    reads: list[Part | None]
    writes: list[Part | None]
    ends: Callable[[], bool]  # whether all others have done what it needs
    results: Callable[[], list[np.ndarray]] = list  # what it writes, in the end


@dataclass
class Side:
    """One rank: its calls, what they make of its tensor, and what is under way, by number."""

    calls: list[tuple[Any, ...]]
    state: np.ndarray
    under_way: dict[int, Use] = field(default_factory=dict)
    collectives: Counter[int] = field(default_factory=Counter)  # that it has called, by group

    def allows(self, part: Part, writes: bool) -> bool:
        """Reports whether the program may use a part now."""
        uses = self.under_way.values()
        others = [p for use in uses for p in (*use.writes, *(use.reads if writes else ()))]
        return not any((marked(part) & marked(p)).any() for p in others)

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
    kind: str  # "all_reduce", "broadcast" from the group's first rank, or "all_gather"
    group: tuple[int, ...]
    shape: tuple[int, ...]
    given: dict[int, np.ndarray] = field(default_factory=dict)

    def ends(self) -> bool:
        return len(self.given) == len(self.group)

    def results(self) -> list[np.ndarray]:
        given = [self.given[r] for r in self.group]
        if self.kind == "all_gather":
            return given
        return [given[0] if self.kind == "broadcast" else np.sum(given, axis=0, dtype=np.int64)]


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
        self.groups = [tuple(range(ranks)), *(tuple(sorted(rng.sample(range(ranks), 2))) for _ in range(2))]
        self.collectives: list[list[tuple[int, Collective]]] = [[] for _ in self.groups]

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
            side.under_way[number] = Use([part], [], met)
        else:
            message.asked = True
            side.under_way[number] = Use([], [part], met, lambda: [message.sent])
        side.calls.append(("send" if sends else "recv", number, (part, message.shape), other))

    def collective(self, new: bool = True) -> None:
        """A rank calls its next collective, or begins a new one."""
        g = self.rng.randrange(len(self.groups))
        rank = self.rng.choice(self.groups[g])
        side, calls = self.sides[rank], self.collectives[g]
        if side.collectives[g] == len(calls):
            if not new:
                return
            kind = self.rng.choice(["all_reduce", "broadcast", "all_gather"])
            self.number += 1
            calls.append((self.number, Collective(kind, self.groups[g], (self.rng.randint(1, 2), COLUMNS))))
        number, which = calls[side.collectives[g]]
        gathers = which.kind == "all_gather"
        part = self.free_part(rank, not gathers, shape=which.shape, whole_rows=True)
        if part is None and new:
            return
        side.collectives[g] += 1
        which.given[rank] = side.given(part, which.shape)
        use = side.under_way[number] = Use([part], [] if gathers else [part], which.ends, which.results)
        for _ in which.group if gathers else ():
            use.writes.append(self.free_part(rank, True, shape=which.shape, whole_rows=True))
        places = [(p, which.shape) for p in use.writes]
        side.calls.append((which.kind, number, g, (part, which.shape), places))

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
            for part, result in zip(use.writes, use.results(), strict=True):
                if part is not None:
                    side.state[part] = result
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
    groups: list[Any]
    works: dict[int, Any] = field(default_factory=dict)

    def play(self, side: Side) -> None:
        for call, *args in side.calls:
            getattr(self, call)(*args)
        assert not self.works
        assert np.array_equal(self.x.numpy(force=True), side.state)

    def at(self, part: Part | None, shape: tuple[int, ...]) -> Any:
        return self.x[part] if part is not None else torch.ones(shape, dtype=torch.int64, device=self.x.device)

    def send(self, number: int, place: Place, peer: int) -> None:
        self.works[number] = dist.isend(self.at(*place), peer, tag=number)

    def recv(self, number: int, place: Place, peer: int) -> None:
        self.works[number] = dist.irecv(self.at(*place), peer, tag=number)

    def all_reduce(self, number: int, group: int, place: Place, _: list[Place]) -> None:
        self.works[number] = dist.all_reduce(self.at(*place), group=self.groups[group], async_op=True)

    def broadcast(self, number: int, group: int, place: Place, _: list[Place]) -> None:
        first = dist.get_process_group_ranks(self.groups[group])[0]
        self.works[number] = dist.broadcast(self.at(*place), first, group=self.groups[group], async_op=True)

    def all_gather(self, number: int, group: int, place: Place, into: list[Place]) -> None:
        parts = [self.at(*p) for p in into]
        self.works[number] = dist.all_gather(parts, self.at(*place), group=self.groups[group], async_op=True)

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
    writer = Writer(rng, ranks)
    sides = writer.write(steps=rng.choice([30, 100, 250]))

    def program(rank: int) -> None:
        dist.init_process_group("nccl" if device == "cuda" else "gloo")
        start = np.arange(ROWS * COLUMNS).reshape(ROWS, COLUMNS) + 1000 * rank
        groups = [dist.new_group(members) for members in writer.groups]
        Player(torch.tensor(start, device=device), groups).play(sides[rank])

    open_world(f"name: some\nsystem: {{sips: {{count: {ranks}}}}}\n")
    on_ranks(ranks, program)
