"""Symmetric memory on the installed PyTorch: real data, in buffers of all ranks."""

import os

import pytest
import torch
import torch.distributed as dist
import torch.distributed._symmetric_memory as symmetric

import torchemu

pytestmark = pytest.mark.shows("PyTorch: symmetric memory")


def started():
    dist.init_process_group("nccl")
    rank = dist.get_rank()
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    return rank, dist.get_world_size(), dist.group.WORLD


def value(rank, shape, seed=0):
    return torch.randint(-8, 8, shape, generator=torch.Generator().manual_seed(100 * seed + rank)).float()


@pytest.mark.shows("programs: tests in pytest")
@torchemu.distributed(world_size=4, torch="real")
def test_a_rank_reads_what_its_peers_have_written():
    rank, world, group = started()
    buffer = symmetric.empty((world, 5), dtype=torch.float32, device="cuda")
    handle = symmetric.rendezvous(buffer, group)
    assert (handle.rank, handle.world_size, handle.buffer_size) == (rank, world, world * 20)
    for step in range(3):
        for peer in range(world):  # a row of each peer's buffer is this rank's
            row = handle.get_buffer(peer, (5,), torch.float32, storage_offset=5 * rank)
            assert row.device == buffer.device
            row.copy_(value(rank, (5,), seed=10 * step + peer).cuda())
        handle.barrier()
        expected = torch.stack([value(peer, (5,), seed=10 * step + rank) for peer in range(world)])
        assert torch.equal(buffer.cpu(), expected)
        handle.barrier()


@torchemu.distributed(world_size=3, torch="real")
def test_signals_order_a_ring_and_take_time():
    rank, world, group = started()
    handle = symmetric.rendezvous(symmetric.empty(4, dtype=torch.int32, device="cuda"), group)
    first, last = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    first.record()
    for turn in range(world):
        if turn == rank:
            following = (rank + 1) % world
            handle.get_buffer(following, (4,), torch.int32).fill_(7 * rank)
            handle.put_signal(following, channel=2)
        if turn == (rank - 1) % world:
            handle.wait_signal(turn, channel=2)
            assert handle.get_buffer(rank, (4,), torch.int32).tolist() == [7 * turn] * 4
    last.record()
    last.synchronize()
    assert first.elapsed_time(last) > 0


@pytest.mark.parametrize("op, exact", [("sum", torch.sum), ("avg", torch.mean)])
@torchemu.distributed(world_size=4, torch="real")
def test_all_reduces(op, exact):
    rank, world, group = started()
    everybody = torch.stack([value(r, (3, 4)) for r in range(world)])
    buffer = symmetric.empty(3, 4, device="cuda")
    symmetric.rendezvous(buffer, group)
    buffer.copy_(everybody[rank])
    expected = exact(everybody, dim=0)
    assert torch.equal(torch.ops.symm_mem.one_shot_all_reduce(buffer, op, group.group_name).cpu(), expected)
    assert torch.equal(buffer.cpu(), everybody[rank])
    torch.ops.symm_mem.two_shot_all_reduce_(buffer, op, group.group_name)
    assert torch.equal(buffer.cpu(), expected)


@torchemu.distributed(world_size=4, torch="real")
def test_products_with_collectives():
    rank, world, group = started()
    rows, weights = [value(r, (2, 6)) for r in range(world)], [value(9, (6, 3)), value(8, (6, 1))]
    gathered, products = torch.ops.symm_mem.fused_all_gather_matmul(
        rows[rank].cuda(), [w.cuda() for w in weights], 0, group.group_name
    )
    assert torch.equal(gathered.cpu(), torch.cat(rows))
    for product, weight in zip(products, weights, strict=True):
        assert torch.equal(product.cpu(), torch.cat(rows) @ weight)
    a, b = [value(r, (8, 2), 1) for r in range(world)], [value(r, (2, 3), 2) for r in range(world)]
    mine = torch.ops.symm_mem.fused_matmul_reduce_scatter(a[rank].cuda(), b[rank].cuda(), "sum", 0, group.group_name)
    assert torch.equal(mine.cpu(), sum(x @ y for x, y in zip(a, b, strict=True)).chunk(world)[rank])


@torchemu.distributed(world_size=4, torch="real")
def test_products_on_two_streams_are_exchanged_as_they_come():
    """PyTorch's own pipeline, from a private function: it keeps its second stream for the whole process."""
    rank, world, group = started()
    a, b = [value(r, (8, 2), 1) for r in range(world)], [value(r, (2, 3), 2) for r in range(world)]
    parts, factor = a[rank].cuda().chunk(world), b[rank].cuda()
    found = torch.empty(8, 3, device="cuda")
    symmetric._pipelined_produce_and_all2all(
        lambda peer, out: torch.mm(parts[peer], factor, out=out), found, group.group_name
    )
    expected = torch.cat([a[r].chunk(world)[rank] @ b[r] for r in range(world)])
    assert torch.equal(found.cpu(), expected)


@torchemu.distributed(world_size=2, torch="real")
def test_errors_name_what_was_wrong():
    rank, _, group = started()
    with pytest.raises(RuntimeError, match="not allocated by"):
        symmetric.rendezvous(torch.empty(4, device="cuda"), group)
    with pytest.raises(RuntimeError, match="not on cpu"):
        symmetric.empty(4, device="cpu")
    handle = symmetric.rendezvous(symmetric.empty(4, device="cuda"), group)
    with pytest.raises(RuntimeError, match="no rank 2 in a group of 2"):
        handle.get_buffer(2, (4,), torch.float32)
    with pytest.raises(RuntimeError, match=r"2 elements of torch\.float32 from 3 on are more than the 4"):
        handle.get_buffer(1, (2,), torch.float32, 3)
    with pytest.raises(RuntimeError, match="multimem_all_reduce_: simulated devices have no multicast"):
        torch.ops.symm_mem.multimem_all_reduce_(symmetric.empty(4, device="cuda"), "sum", group.group_name)
    with pytest.raises(RuntimeError, match=rf"rank {rank} has a tensor of {4 + 4 * rank} bytes, and rank {1 - rank}"):
        symmetric.rendezvous(symmetric.empty(1 + rank, device="cuda"), group)
