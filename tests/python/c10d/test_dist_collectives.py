"""Every collective, bit for bit, against what NumPy says that each rank must end with."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from collective_cases import CASES, Arrays, Case, blank
from conftest import NUMPY, OpenWorld, same
from ranks import SIXTY_FOUR, on_ranks

import torchemu as torch
import torchemu.distributed as dist

pytestmark = pytest.mark.shows("PyTorch: collectives")

WORLD_SIZES = [1, 2, 3, 8, *(pytest.param(n, marks=pytest.mark.slow) for n in (4, 7, 16, 64))]


def check(case: Case, ranks: list[int] | None, world_size: int) -> None:
    """Runs the case on some ranks, or all, of so many."""
    members = list(range(world_size)) if ranks is None else ranks
    n = len(members)

    def program(rank: int) -> Arrays:
        dist.init_process_group("gloo")
        group = dist.group.WORLD if ranks is None else dist.new_group(ranks)
        if rank not in members:
            return []
        start = [torch.from_numpy(a.copy()) for a in case.given(members.index(rank), n)]
        return [np.array(t.numpy()) for t in case.call(group, start)]

    ends = on_ranks(world_size, program)
    want = case.want([case.given(i, n) for i in range(n)])
    for i, rank in enumerate(members):
        assert len(ends[rank]) == len(want[i])
        for j, (got, wanted) in enumerate(zip(ends[rank], want[i], strict=True)):
            assert same(got, wanted), f"result {j} of rank {rank} is\n{got}\nand not\n{wanted}"


@pytest.mark.filterwarnings("ignore:`torch.distributed.all_")
@pytest.mark.parametrize("world_size", WORLD_SIZES)
@pytest.mark.parametrize("name", CASES)
def test_all_ranks(open_world: OpenWorld, name: str, world_size: int) -> None:
    open_world(SIXTY_FOUR)
    check(CASES[name], None, world_size)


@pytest.mark.filterwarnings("ignore:`torch.distributed.all_")
@pytest.mark.parametrize("ranks", [[2], [1, 4], [0, 2, 3, 6]], ids=str)
@pytest.mark.parametrize("name", CASES)
def test_some_ranks(open_world: OpenWorld, name: str, ranks: list[int]) -> None:
    open_world("sips8")
    check(CASES[name], ranks, 7)


MOVES = ["broadcast", "all_gather", "all_gather_into_tensor", "gather", "scatter", "all_to_all", "all_to_all_single"]


def move(name: str, rank: int, n: int, x: torch.Tensor) -> list[torch.Tensor]:
    """A collective on x, of 2·n rows, that gives every rank the rows of rank 1 or those that all have for it."""
    out = [blank((2, 3), x) for _ in range(n)]
    mine = [x[2 * i : 2 * i + 2] for i in range(n)]
    if name == "broadcast":
        dist.broadcast(x, 1)
        return [x]
    if name == "all_gather":
        dist.all_gather(out, mine[0])
    elif name == "all_gather_into_tensor":
        whole = blank((2 * n, 3), x)
        dist.all_gather_into_tensor(whole, mine[0])
        return [whole]
    elif name == "gather":
        dist.gather(mine[0], out if rank == 1 else None, 1)
    elif name == "scatter":
        dist.scatter(out[0], mine if rank == 1 else None, 1)
    elif name == "all_to_all":
        dist.all_to_all(out, mine)
    else:
        whole = blank((2 * n, 3), x)
        dist.all_to_all_single(whole, x)
        return [whole]
    return out


@pytest.mark.parametrize("kind", NUMPY)
@pytest.mark.parametrize("name", MOVES)
def test_every_dtype_moves_unchanged(open_world: OpenWorld, name: str, kind: str) -> None:
    """Any bits: NaNs too keep theirs."""
    open_world("sips2")
    rng = np.random.default_rng(5)
    raw = rng.integers(0, 2 if kind == "bool" else 256, (2, 12 * np.dtype(NUMPY[kind]).itemsize), np.uint8)
    rows = raw.view(NUMPY[kind]).reshape(2, 4, 3)

    def program(rank: int) -> Arrays:
        dist.init_process_group()
        return [np.array(t.numpy()) for t in move(name, rank, 2, torch.from_numpy(rows[rank].copy()))]

    ends = on_ranks(2, program)
    nothing = np.full((2, 3), 99).astype(NUMPY[kind])
    both = [[rows[0][:2], rows[1][:2]]] * 2
    swapped = [[rows[0][2 * r : 2 * r + 2], rows[1][2 * r : 2 * r + 2]] for r in range(2)]
    want = {
        "broadcast": [[rows[1]]] * 2,
        "all_gather": both,
        "all_gather_into_tensor": [[np.concatenate(blocks)] for blocks in both],
        "gather": [[nothing, nothing], both[1]],
        "scatter": [[rows[1][2 * r : 2 * r + 2], nothing] for r in range(2)],
        "all_to_all": swapped,
        "all_to_all_single": [[np.concatenate(blocks)] for blocks in swapped],
    }
    for got, wanted in zip(ends, want[name], strict=True):
        assert all(same(a, b) for a, b in zip(got, wanted, strict=True))


def columns(t: torch.Tensor) -> torch.Tensor:
    """A view that has gaps: every other column."""
    return t[:, ::2]


def test_tensors_with_gaps(open_world: OpenWorld) -> None:
    open_world("sips2")

    def program(rank: int) -> Arrays:
        dist.init_process_group()
        around = [torch.from_numpy(np.arange(12, dtype=np.float32).reshape(2, 6) + 100 * rank) for _ in range(4)]
        t, a, b, into = map(columns, around)
        dist.all_reduce(t)
        dist.all_gather([a, b], columns(torch.from_numpy(np.full((2, 6), rank, np.float32))))
        dist.all_gather_into_tensor(into, columns(torch.from_numpy(np.full((1, 6), rank, np.float32))))
        return [np.array(x.numpy()) for x in around]

    for rank, (t, a, b, into) in enumerate(on_ranks(2, program)):
        before = np.arange(12, dtype=np.float32).reshape(2, 6) + 100 * rank
        for seen in (t, a, b, into):
            assert same(seen[:, 1::2], before[:, 1::2])
        assert same(t[:, ::2], (2 * np.arange(12).reshape(2, 6) + 100).astype(np.float32)[:, ::2])
        assert (a[:, ::2] == 0).all() and (b[:, ::2] == 1).all()
        assert (into[0, ::2] == 0).all() and (into[1, ::2] == 1).all()


def test_scalars(open_world: OpenWorld) -> None:
    open_world("sips2")

    def program(rank: int) -> Any:
        dist.init_process_group()
        t, outs, into = torch.tensor(rank + 1.0), [torch.tensor(0.0) for _ in range(2)], torch.zeros(2)
        dist.all_gather(outs, t)
        dist.all_gather_into_tensor(into, t)
        dist.all_reduce(t)
        return t.shape, t.item(), [o.item() for o in outs], into.tolist()

    assert on_ranks(2, program) == [((), 3, [1, 2], [1, 2])] * 2


def test_old_and_new_names_are_the_same() -> None:
    assert dist.all_gather_single is dist.all_gather_into_tensor
    assert dist.reduce_scatter_single is dist.reduce_scatter_tensor


def test_coalesced_calls_warn(open_world: OpenWorld) -> None:
    open_world("sips2")

    def program(rank: int) -> None:
        dist.init_process_group()
        t = torch.ones(1)
        with pytest.warns(
            FutureWarning, match=r"`torch\.distributed\.all_\w+_coalesced` will be deprecated\."
        ) as caught:
            dist.all_reduce_coalesced([t])
            dist.all_gather_coalesced([[t], [t]], [t])
        assert [w.filename for w in caught] == [__file__] * 2

    on_ranks(2, program)


@pytest.mark.parametrize("old", ["_all_gather_base", "_reduce_scatter_base"])
def test_names_that_warn(open_world: OpenWorld, old: str) -> None:
    open_world("sips2")

    def program(rank: int) -> list[float]:
        dist.init_process_group()
        many, one = torch.ones(2), torch.full((1,), float(rank))
        with pytest.warns(FutureWarning, match=f"{old}` is a private function and will be deprecated") as caught:
            getattr(dist, old)(*((many, one) if "gather" in old else (one, many)))
        assert caught[0].filename == __file__
        return (many if "gather" in old else one).tolist()

    assert on_ranks(2, program) == ([[0, 1]] * 2 if "gather" in old else [[2], [2]])


@pytest.mark.filterwarnings("ignore:`torch.distributed.all_")
@pytest.mark.parametrize("world_size", [1, 2, 5])
def test_without_async_op_there_is_no_work(open_world: OpenWorld, world_size: int) -> None:
    """… and with it there is, for every collective; its result is what the collective writes."""
    open_world("sips8")

    def program(rank: int) -> None:
        dist.init_process_group()
        n = world_size
        one, many, room = torch.zeros(2), torch.zeros(2 * n), [torch.zeros(2) for _ in range(n)]
        first = room if rank == 0 else None
        for call, outputs in (
            (lambda **o: dist.all_reduce(one, **o), [one]),
            (lambda **o: dist.all_reduce_coalesced([one, many], **o), [one, many]),
            (lambda **o: dist.broadcast(one, 0, **o), [one]),
            (lambda **o: dist.reduce(one, 0, **o), [one]),
            (lambda **o: dist.all_gather(room, one, **o), room),
            (lambda **o: dist.all_gather_into_tensor(many, one, **o), [many]),
            (lambda **o: dist.all_gather_coalesced([room[:1]] * n, [one], **o), [room[:1]] * n),
            (lambda **o: dist.gather(one, first, 0, **o), first or []),
            (lambda **o: dist.scatter(one, first, 0, **o), [one]),
            (lambda **o: dist.reduce_scatter(one, room, **o), [one]),
            (lambda **o: dist.reduce_scatter_tensor(one, many, **o), [one]),
            (lambda **o: dist.all_to_all(room, [torch.zeros(2) for _ in range(n)], **o), room),
            (lambda **o: dist.all_to_all_single(many, torch.zeros(2 * n), **o), [many]),
            (lambda **o: dist.barrier(**o), []),
        ):
            assert call() is None
            work = call(async_op=True)
            assert isinstance(work, dist.Work) and work.wait() is True
            assert len(work.result()) == len(outputs)
            assert all(a is b or a == b for a, b in zip(work.result(), outputs, strict=True))

    on_ranks(world_size, program)


@pytest.mark.parametrize("backend", ["gloo", "ahbm", "cpu:gloo,cuda:nccl"])
def test_tensors_of_the_host(open_world: OpenWorld, backend: str) -> None:
    open_world("sips2")

    def program(rank: int) -> Any:
        dist.init_process_group(backend)
        t, into = torch.full((2,), rank + 1.0, device="cpu"), torch.zeros(2, 2, device="cpu")
        dist.all_gather_into_tensor(into, t)
        dist.all_reduce(t)
        if rank == 0:
            dist.send(t, 1)
        else:
            dist.recv(t, 0)
        return t.device.type, t.tolist(), into.tolist()

    assert on_ranks(2, program) == [("cpu", [3, 3], [[1, 1], [2, 2]])] * 2


@pytest.mark.parametrize(("backend", "device"), [("nccl", "cpu"), ("cuda:nccl", "cpu"), ("cpu:gloo", "ahbm")])
def test_tensors_that_are_not_for_the_backend(open_world: OpenWorld, backend: str, device: str) -> None:
    open_world("sips2")

    def program(rank: int) -> None:
        dist.init_process_group(backend)
        for call in (lambda t: dist.all_reduce(t), lambda t: dist.send(t, 1 - rank)):
            with pytest.raises(RuntimeError, match=f"^No backend type associated with device type {device}$"):
                call(torch.zeros(2, device=device))
        dist.barrier()
        dist.all_gather_object([None, None], rank)  # what the group itself makes is for its backend

    on_ranks(2, program)


@pytest.mark.filterwarnings("ignore:`torch.distributed.all_")
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("schedule", ["random", "pct"])
def test_under_every_schedule_of_ranks(open_world: OpenWorld, schedule: str, seed: int) -> None:
    """All collectives in turn, on groups that overlap; the orders of the two groups' differ."""
    world = open_world("sips8")
    world.schedule, world.seed = schedule, seed
    members = {"all": [0, 1, 2, 3, 4], "some": [1, 2, 4]}
    names = [(name, who) for i, name in enumerate(CASES) for who in (members if i % 2 else reversed(members))]

    def program(rank: int) -> list[Arrays]:
        dist.init_process_group()
        groups = {who: dist.new_group(ranks) for who, ranks in members.items()}
        ends = []
        for name, who in names:
            if rank in members[who]:
                given = CASES[name].given(members[who].index(rank), len(members[who]))
                ends.append(CASES[name].call(groups[who], [torch.from_numpy(a.copy()) for a in given]))
        return [[np.array(t.numpy()) for t in end] for end in ends]

    ends = on_ranks(5, program)
    for name, who in names:
        n = len(members[who])
        want = CASES[name].want([CASES[name].given(i, n) for i in range(n)])
        for i, rank in enumerate(members[who]):
            got = ends[rank].pop(0)
            assert len(got) == len(want[i]) and all(map(same, got, want[i])), f"{name} on {who}, rank {rank}"
