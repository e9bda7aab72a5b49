"""Messages between two ranks."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from conftest import NUMPY, OpenWorld, same
from ranks import SIXTY_FOUR, failures, on_ranks

import torchemu as torch
import torchemu.distributed as dist
from torchemu.errors import DeadlockError, MismatchError
from torchemu.runtime.waiting import host_time

pytestmark = pytest.mark.shows("PyTorch: messages")

WORLD_SIZES = [1, 2, 3, 4, 7, 8, 16, 64]
MICROSECOND = 10**6


def filled(value: float, *shape: int) -> torch.Tensor:
    return torch.full(shape or (1,), float(value))


@pytest.mark.parametrize("kind", NUMPY)
def test_every_dtype_arrives_unchanged(open_world: OpenWorld, kind: str) -> None:
    open_world("sips2")
    raw = np.random.default_rng(7).integers(0, 2 if kind == "bool" else 256, 15 * 16, np.uint8)
    sent = raw.view(NUMPY[kind])[:15].reshape(3, 5)

    def program(rank: int) -> Any:
        dist.init_process_group()
        if rank == 0:
            return dist.send(torch.from_numpy(sent.copy()), 1)
        t = torch.zeros(3, 5, dtype=kind)
        assert dist.recv(t, 0) == 0
        return np.array(t.numpy())

    nothing, got = on_ranks(2, program)
    assert nothing is None and same(got, sent)


@pytest.mark.parametrize("world_size", WORLD_SIZES)
def test_along_a_chain(open_world: OpenWorld, world_size: int) -> None:
    """Rank 0's tensor passes through all ranks, of which each adds to it: a pipeline."""
    open_world(SIXTY_FOUR)

    def program(rank: int) -> float:
        dist.init_process_group("gloo")
        t = filled(100)
        if rank > 0:
            assert dist.recv(t, rank - 1) == rank - 1
            t.copy_(torch.from_numpy(t.numpy() + 1))
        if rank < world_size - 1:
            dist.send(t, rank + 1)
        return t.item()

    assert on_ranks(world_size, program) == [100 + r for r in range(world_size)]


@pytest.mark.parametrize("world_size", WORLD_SIZES)
@pytest.mark.parametrize("batch", [True, False])
def test_around_a_ring(open_world: OpenWorld, world_size: int, batch: bool) -> None:
    """Each sends to the right and receives from the left at once; a ring of one sends to itself."""
    open_world(SIXTY_FOUR)

    def program(rank: int) -> list[float]:
        dist.init_process_group()
        right, left = (rank + 1) % world_size, (rank - 1) % world_size
        mine, theirs = filled(rank, 3), torch.zeros(3)
        if batch:
            ops = [dist.P2POp(dist.isend, mine, right), dist.P2POp(dist.irecv, theirs, left)]
            works = dist.batch_isend_irecv(ops)
        else:
            works = [dist.isend(mine, right), dist.irecv(theirs, left)]
        assert len(works) == 2 and all(work.wait() for work in works)
        assert [work.result()[0] for work in works] == [mine, theirs]
        return theirs.tolist()

    assert on_ranks(world_size, program) == [[(r - 1) % world_size] * 3 for r in range(world_size)]


def test_tags_are_mailboxes_of_their_own(open_world: OpenWorld) -> None:
    open_world("sips2")

    def program(rank: int) -> Any:
        dist.init_process_group()
        if rank == 0:
            works = [dist.isend(filled(10 * tag + i), 1, tag=tag) for i, tag in enumerate((5, 6, 5, 6))]
            return [work.wait() for work in works]
        t, got = torch.zeros(1), []
        for tag in (6, 5, 6, 5):
            dist.recv(t, 0, tag=tag)
            got.append(t.item())
        return got

    assert on_ranks(2, program) == [[True] * 4, [61, 50, 63, 52]]


def test_from_any_rank(open_world: OpenWorld) -> None:
    """recv returns the sender as a number in the default group; a work, as one in its group."""
    open_world("default")

    def program(rank: int) -> Any:
        dist.init_process_group()
        group = dist.new_group([1, 2, 3])
        if rank == 0:
            return None
        if rank != 2:
            dist.send(filled(rank), 2, group=group)
            return dist.isend(filled(rank), group_dst=1, group=group).wait()
        t, senders = torch.zeros(1), []
        for _ in range(2):
            sender = dist.recv(t, group=group)
            assert t.item() == sender
            senders.append(sender)
        for _ in range(2):
            work = dist.irecv(t, group=group)
            work.wait()
            assert t.item() == dist.get_global_rank(group, work.source_rank()) == work._source_rank() + 1
            senders.append(int(t.item()))
        return sorted(senders)

    assert on_ranks(4, program) == [None, True, [1, 1, 3, 3], True]


def test_ranks_of_a_group(open_world: OpenWorld) -> None:
    open_world("default")

    def program(rank: int) -> Any:
        dist.init_process_group()
        group = dist.new_group([1, 3])
        t = filled(rank)
        if rank == 1:
            dist.send(t, 3, group=group)
            dist.send(t, group_dst=1, group=group)
        if rank == 3:
            a, b = torch.zeros(1), torch.zeros(1)
            return dist.recv(a, 1, group), dist.recv(b, group_src=0, group=group), a.item(), b.item()
        return None

    assert on_ranks(4, program) == [None, None, None, (1, 1, 1, 1)]


def test_send_blocks_the_host_and_isend_does_not(open_world: OpenWorld) -> None:
    open_world("sips2")

    def program(rank: int) -> Any:
        dist.init_process_group()
        t = torch.ones(1 << 20)
        dist.barrier()
        start = host_time()
        if rank == 1:
            work = dist.irecv(t, 0)
            issued = host_time()
            work.wait()
            waited = host_time()
            dist.recv(t, 0)
            return issued - start, waited - start, host_time() - start, work._get_duration()
        work = dist.isend(t, 1)
        issued = host_time()
        dist.send(t, 1)
        return issued - start, host_time() - start, work._get_duration()

    (issued, sent, took), (posted, waited, received, _) = on_ranks(2, program)
    assert issued < 20 * MICROSECOND and posted < 20 * MICROSECOND and waited < 20 * MICROSECOND
    assert sent == received
    assert took * 1e9 * 2 == pytest.approx(sent, rel=0.1)  # two messages, one after the other


def test_p2p_op() -> None:
    assert [dist.P2POp.__init__.__annotations__[n] for n in ("peer", "group_peer")] == ["int | None", "int | None"]


def test_what_a_p2p_op_knows(open_world: OpenWorld) -> None:
    open_world("default")

    def program(rank: int) -> None:
        dist.init_process_group()
        group = dist.new_group([1, 3])
        if rank != 1:
            return
        op = dist.P2POp(dist.irecv, torch.zeros(2), 3, group, tag=4)
        assert (op.op, op.peer, op.group_peer, op.group, op.tag) == (dist.irecv, 3, 1, group, 4)
        assert repr(op).startswith("P2POp(irecv pg=1, group_src=1, group_dst=0,  torch.Size([2]), torch.float32")
        other = dist.P2POp(dist.isend, torch.zeros(2), group=group, group_peer=1)
        assert (other.peer, other.group_peer) == (3, 1)
        assert repr(other).startswith("P2POp(isend pg=1, group_src=0, group_dst=1,")
        mixed = [op, dist.P2POp(dist.irecv, torch.zeros(2), 3)]
        with pytest.raises(ValueError, match=r"^All ops need to use the same group\.$"):
            dist.batch_isend_irecv(mixed)
        for arguments, text in (
            ({"peer": 3, "group_peer": 1}, "Can't specify both group_rank and global_rank"),
            ({}, "Must specify global_rank or group_rank"),
            ({"peer": 2}, "Global rank 2 is not part of group"),
        ):
            with pytest.raises(ValueError, match=text):
                dist.P2POp(dist.isend, torch.zeros(2), group=group, **arguments)
        with pytest.raises(TypeError, match="Expected parameter `tensor`"):
            dist.P2POp(dist.isend, 3, 3)
        with pytest.raises(ValueError, match="Group -100 is not registered"):
            dist.P2POp(dist.isend, torch.zeros(2), 3, dist.GroupMember.NON_GROUP_MEMBER)

    on_ranks(4, program)


def test_a_group_and_none_are_one_group(open_world: OpenWorld) -> None:
    open_world("sips2")

    def program(rank: int) -> float:
        dist.init_process_group()
        t = torch.zeros(1)
        ops = [
            dist.P2POp(dist.isend, filled(rank), 1 - rank),
            dist.P2POp(dist.irecv, t, 1 - rank, dist.group.WORLD),
        ]
        for work in dist.batch_isend_irecv(ops):
            work.wait()
        return t.item()

    assert on_ranks(2, program) == [1, 0]


@pytest.mark.parametrize("shapes", [((2, 3), (6,)), ((6, 1), (1, 6)), ((2, 3), (3, 2)), ((1,), ()), ((0, 4), (2, 0))])
@pytest.mark.parametrize("strided", [False, True])
def test_shapes_of_a_message_may_differ(
    open_world: OpenWorld, shapes: tuple[tuple[int, ...], tuple[int, ...]], strided: bool
) -> None:
    """Messages are elements in order, as in PyTorch; numbers of elements that differ are an error."""
    open_world("sips2")
    sent, taken = shapes
    values = np.arange(math.prod(sent), dtype=np.float32) + 1

    def program(rank: int) -> list[float]:
        dist.init_process_group()
        room = torch.zeros((*(sent if rank == 0 else taken), 2))
        t = room[..., 0] if strided else room[..., 0].clone()
        if rank == 0:
            t.copy_(torch.from_numpy(values.reshape(sent)))
            dist.send(t, 1)
        else:
            dist.recv(t, 0)
        assert room[..., 1].sum() == 0
        return list(t.numpy().ravel())

    assert on_ranks(2, program) == [list(values)] * 2


def test_messages_that_do_not_fit(open_world: OpenWorld) -> None:
    open_world("sips2")

    def program(rank: int) -> None:
        dist.init_process_group()
        if rank == 0:
            dist.send(torch.zeros(2), 1)
        else:
            dist.recv(torch.zeros(2, dtype="float64"), 0)

    found = failures(2, program)
    assert {type(e) for e in found.values()} == {MismatchError} and len(found) == 2
    for error in found.values():
        first, send, recv, last = str(error).splitlines()
        assert (first, last) == (
            "ranks 0 and 1 disagree on the dtype in a message:",
            "Both sides must have the same dtype.",
        )
        assert send.startswith("  rank 0 calls send of 2 float32 elements at") and __file__ in send
        assert recv.startswith("  rank 1 calls recv of 2 float64 elements at") and "in program" in recv


def test_all_receive_first(open_world: OpenWorld) -> None:
    open_world("default")

    def program(rank: int) -> None:
        dist.init_process_group()
        t = torch.zeros(1)
        dist.recv(t, (rank - 1) % 4)
        dist.send(t, (rank + 1) % 4)

    found = failures(4, program)
    assert len(found) == 4
    for error in found.values():
        assert type(error) is DeadlockError
        assert "rank 2 waits for recv from rank 1 of 1 float32 element (tag 0, group default)" in str(error)
        assert str(error).endswith(
            "wait for each other in a circle: each receives first; let one of them send first, or all use "
            "batch_isend_irecv"
        )
