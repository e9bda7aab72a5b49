"""Random programs whose ranks call the same operations in different orders: however they block each other, on their
devices too, a run ends with a report that has a cause and can be read."""

from __future__ import annotations

import random
from dataclasses import dataclass

import pytest
from conftest import OpenWorld
from ranks import on_ranks

import torchemu as torch
import torchemu.distributed as dist
from torchemu.errors import DeadlockError, MismatchError
from torchemu.multiprocessing import SpawnException

pytestmark = pytest.mark.filterwarnings("ignore::torchemu.runtime.outstanding.UnwaitedWarning")  # on purpose

LONGEST = 700  # characters of a line: three operations, with their places


@dataclass(frozen=True)
class Call:
    """An operation of a rank, on one of three groups and one of three tensors."""

    operation: str
    group: int
    tensor: int


OPERATIONS = ("all_reduce", "broadcast", "all_gather", "send", "recv", "wait", "multiply")


def calls_of(seed: int, rank: int) -> list[Call]:
    """The calls of a rank: those of all ranks, sometimes in another order or without the last one."""
    common = random.Random(seed)
    calls = [
        Call(common.choice(OPERATIONS), common.randrange(3), common.randrange(3)) for _ in range(common.randrange(2, 9))
    ]
    own = random.Random(f"{seed} {rank}")
    if own.random() < 0.4:
        own.shuffle(calls)
    return calls[:-1] if own.random() < 0.1 else calls


class Player:
    """Makes the calls of the running rank."""

    def __init__(self, rank: int, world: int, device: str) -> None:
        self._rank, self._world = rank, world
        self._groups = [dist.group.WORLD, dist.new_group(list(range(world))), dist.new_group([0, 1])]
        self._tensors = [torch.ones(8, device=device) for _ in range(3)]
        self._works: list[dist.Work] = []

    def play(self, call: Call) -> None:
        """Makes one."""
        group, t = self._groups[call.group], self._tensors[call.tensor]
        if call.operation == "send":
            self._works.append(dist.isend(t, (self._rank + 1) % self._world))
        elif call.operation == "recv":
            self._works.append(dist.irecv(t, (self._rank - 1) % self._world))
        elif call.operation == "wait" and self._works:
            self._works.pop(0).wait()
        elif call.operation == "multiply":
            self._tensors[call.tensor] = t * 2
        elif call.group < 2 or self._rank < 2:
            self._collective(call.operation, group, t)

    def _collective(self, operation: str, group: dist.ProcessGroup, t: torch.Tensor) -> None:
        if operation == "all_reduce":
            self._works.append(dist.all_reduce(t, group=group, async_op=True))
        elif operation == "broadcast":
            dist.broadcast(t, 0, group=group)
        elif operation == "all_gather":
            dist.all_gather_into_tensor(torch.empty(8 * group.size(), device=t.device), t, group=group)

    def end(self) -> None:
        """Looks at a result, and waits for what has been left."""
        self._tensors[0].tolist()
        for work in self._works:
            work.wait()


def program(rank: int, seed: int, world: int, backend: str) -> None:
    dist.init_process_group(backend)
    player = Player(rank, world, "cuda" if backend == "nccl" else "cpu")
    for call in calls_of(seed, rank):
        player.play(call)
    player.end()


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["nccl", "gloo"])
def test_every_end_is_told(backend: str, open_world: OpenWorld) -> None:
    ends = set()
    for seed in range(100):
        open_world("default")
        world = 2 + seed % 3
        try:
            on_ranks(world, program, seed, world, backend)
        except SpawnException as failed:
            error = failed.errors[0].exception
            text = str(error)
            assert isinstance(error, DeadlockError | MismatchError), f"seed {seed}: {error!r}"
            assert isinstance(error, MismatchError) or "\nlikely cause: " in text, f"seed {seed}: {text}"
            assert max(map(len, text.splitlines())) < LONGEST, f"seed {seed}: {text}"
            ends.add(type(error))
        else:
            ends.add(None)
    assert ends == {None, DeadlockError, MismatchError}
