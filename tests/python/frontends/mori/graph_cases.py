"""Graphs of mori's collectives, of the default ones and of a kernel's: each replay has the inputs of its time."""

import os

import mori
import torch
import torch.distributed as dist
import triton
import triton.language as tl

rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
dist.init_process_group("cpu:gloo,cuda:nccl", rank=rank, world_size=world)
torch._C._distributed_c10d._register_process_group("default", dist.group.WORLD)
mori.shmem.shmem_torch_process_group_init("default")
G, n = int(os.environ["LOCAL_WORLD_SIZE"]), 1000


@triton.jit
def doubled(x, y, n, size: tl.constexpr):
    at = tl.program_id(0) * size + tl.arange(0, size)
    tl.store(y + at, 2 * tl.load(x + at, mask=at < n), mask=at < n)


hier = mori.ccl.HierAllGather(rank, world, 4 * n, 4 * n * world, slice_min_bytes=0)
ring = mori.ccl.InterNodeRingAllgather(rank, world, 4 * n * world)
gathers = [hier, ring]
if world == G:
    gathers.append(mori.ccl.AllgatherSdma(rank, world, transit_buffer_size=4 * n))
x = torch.zeros(n, device="cuda")
outs = [torch.zeros(n * world, device="cuda") for _ in gathers]
default = torch.zeros(n * world, device="cuda")
total, twice = torch.zeros(n, device="cuda"), torch.zeros(n, device="cuda")


def enqueue(stream):
    for gather, out in zip(gathers, outs, strict=True):
        gather(x, out, n, stream)
    dist.all_gather_into_tensor(default, x)
    doubled[(triton.cdiv(n, 256),)](x, twice, n, size=256)
    total.add_(outs[0].view(world, n).sum(0))
    dist.all_reduce(total)


warm = torch.cuda.Stream()
warm.wait_stream(torch.cuda.current_stream())
with torch.cuda.stream(warm):
    enqueue(warm)
torch.cuda.synchronize()
dist.barrier()
graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    enqueue(torch.cuda.current_stream())
want = 0
for turn in range(1, 4):
    x.fill_(100.0 * turn + rank)
    torch.cuda.synchronize()
    dist.barrier()
    if rank % 2:
        torch.cuda._sleep(100_000)
    graph.replay()
    torch.cuda.synchronize()
    gathered = torch.cat([torch.full((n,), 100.0 * turn + r) for r in range(world)])
    assert all(torch.equal(out.cpu(), gathered) for out in (*outs, default)), turn
    assert twice.cpu().tolist() == [2 * (100.0 * turn + rank)] * n
    want = world * (want + sum(100 * turn + r for r in range(world)))
    assert total.cpu().tolist() == [want] * n
    dist.barrier()
mori.shmem.shmem_finalize()
print("all equal")
