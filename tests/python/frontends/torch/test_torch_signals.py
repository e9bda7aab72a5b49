"""Barriers and signals of symmetric memory on the installed PyTorch: their order, their channels, their limits."""

import os

import pytest
import torch
import torch.distributed as dist
import torch.distributed._symmetric_memory as symmetric

import torchemu
from torchemu.errors import DeadlockError

pytestmark = pytest.mark.shows("PyTorch: symmetric memory")


def met(n=1, group=None):
    """Returns the rank, and a symmetric tensor of n zeros with its handle."""
    dist.init_process_group("nccl")
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    t = symmetric.empty(n, device="cuda").zero_()
    return dist.get_rank(), t, symmetric.rendezvous(t, group or dist.group.WORLD)


@torchemu.distributed(world_size=5, torch="real")
def test_signals_hand_elements_on():
    """Each rank waits for its left neighbour's signal, adds to what came and hands it on."""
    rank, t, handle = met()
    if rank:
        handle.wait_signal(rank - 1)
    if rank < 4:
        handle.get_buffer(rank + 1, (1,), torch.float32).copy_(t + rank + 1)
        handle.put_signal(rank + 1)
    assert t.item() == [0, 1, 3, 6, 10][rank]


@torchemu.distributed(world_size=2, torch="real")
def test_a_signal_does_not_wait_for_who_waits_for_it():
    rank, _, handle = met()
    handle.put_signal(1 - rank)
    handle.wait_signal(1 - rank)


@torchemu.distributed(world_size=2, torch="real")
def test_signals_of_channels_and_of_several_rounds():
    rank, t, handle = met()
    seen = []
    for turn in range(4):
        if rank == 0:
            handle.get_buffer(1, (1,), torch.float32).fill_(turn)
            handle.put_signal(1, channel=turn)
            handle.wait_signal(1, channel=0)
        else:
            handle.wait_signal(0, channel=turn)
            seen.append(t.item())
            handle.put_signal(0)
    assert seen == [[], [0, 1, 2, 3]][rank]


@torchemu.distributed(world_size=2, torch="real")
def test_signals_to_all_ranks_and_to_itself():
    """Streams write to all ranks' memory and tell each; a signal of its own that a rank has not sent is refused."""
    rank, t, handle = met(2)
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    handle.barrier()
    for turn in range(2):
        with torch.cuda.stream(side):
            for peer in range(2):
                handle.get_buffer(peer, (2,), torch.float32)[rank] = 10 * turn + rank
                handle.put_signal(peer)
        for peer in range(2):
            handle.wait_signal(peer)
        assert t.tolist() == [10 * turn, 10 * turn + 1]
        handle.barrier()
        side.wait_stream(torch.cuda.current_stream())
    with pytest.raises(RuntimeError, match=r"waits for a signal of its own on channel 0"):
        handle.wait_signal(rank)


@pytest.mark.parametrize("seed", range(4))
def test_order_does_not_depend_on_who_runs_when(seed):
    """A ring of partial sums, written into neighbours' memory between barriers, under random schedules of ranks."""

    @torchemu.distributed(world_size=6, torch="real", seed=seed)
    def test():
        rank, t, handle = met(2)
        t[0] = rank
        right = handle.get_buffer((rank + 1) % 6, (2,), torch.float32)
        handle.barrier()
        total = t[:1].clone()
        for _ in range(5):
            right[1:].copy_(t[:1])
            handle.barrier()
            t[:1].copy_(t[1:])
            total += t[:1]
            handle.barrier()
        assert total.item() == 15

    test()


@pytest.mark.parametrize("signals", [False, True])
@torchemu.distributed(world_size=2, torch="real")
def test_order_does_not_wait_for_what_the_stream_does_not(signals):
    """Rank 1 joins a collective that rank 0's stream does not wait for only after the two have met."""
    rank, t, handle = met(3)
    t.fill_(rank + 1)

    def meet():
        if not signals:
            handle.barrier()
        elif rank == 0:
            handle.put_signal(1)
        else:
            handle.wait_signal(0)

    handle.barrier()
    if rank == 0:
        work = dist.all_reduce(t, async_op=True)
        meet()
        work.wait()
    else:
        meet()
        dist.all_reduce(t)
    handle.barrier()
    assert handle.get_buffer(1 - rank, (3,), torch.float32).tolist() == [3.0] * 3 == t.tolist()


@torchemu.distributed(world_size=2, torch="real")
def test_channels_have_their_own_order_and_limits():
    """Rank 0 passes channel 1 first, rank 1 channel 0: neither meets the other's, and each is there later."""
    rank, _, handle = met()
    with pytest.raises(RuntimeError, match=f"SymmetricMemory: barrier .channel {1 - rank}. timed out after 1 ms"):
        handle.barrier(channel=1 - rank, timeout_ms=1)
    handle.barrier(channel=rank, timeout_ms=1)
    if rank:
        with pytest.raises(RuntimeError, match=r"wait_signal from rank 0 \(channel 3\) timed out after 2 ms"):
            handle.wait_signal(0, channel=3, timeout_ms=2)
    dist.barrier()
    if rank == 0:
        handle.put_signal(1, channel=3)


@torchemu.distributed(world_size=4, torch="real")
def test_groups_of_some_ranks():
    dist.init_process_group("nccl")
    rank = dist.get_rank()
    torch.cuda.set_device(rank)
    pair = [dist.new_group([0, 2]), dist.new_group([1, 3])][rank % 2]
    t = symmetric.empty(2, device="cuda").fill_(rank)
    handle = symmetric.rendezvous(t, pair)
    handle.barrier()
    other = (rank + 2) % 4
    assert (handle.rank, handle.world_size) == (rank // 2, 2)
    assert handle.get_buffer(1 - handle.rank, (2,), torch.float32).tolist() == [other] * 2
    assert torch.ops.symm_mem.one_shot_all_reduce(t, "sum", pair.group_name).tolist() == [rank + other] * 2


def test_a_signal_that_nobody_sends_is_a_deadlock():
    @torchemu.distributed(world_size=2, torch="real")
    def test():
        rank, _, handle = met()
        if rank == 1:
            handle.wait_signal(0, channel=3)

    with pytest.raises(DeadlockError, match=r"recv from rank 0 .*signals"):
        test()


@torchemu.distributed(world_size=2, torch="real")
def test_misuse_of_channels_and_ranks():
    _, _, handle = met()
    for call in (
        handle.barrier,
        lambda channel: handle.put_signal(0, channel),
        lambda channel: handle.wait_signal(0, channel),
    ):
        with pytest.raises(RuntimeError, match=r"channel for barrier.* must be greater than 0 \(got -1\)"):
            call(-1)
        with pytest.raises(RuntimeError, match=r"The maximum supported channel for .* is 1151 \(got 1152\)"):
            call(1152)
    with pytest.raises(RuntimeError, match="put_signal: there is no rank 2: the group has 2"):
        handle.put_signal(2)
