"""mori's collectives among PEs of one node, and its symmetric memory, each against what it must give."""

import os

import mori
import numpy as np
import torch
import torch.distributed as dist
from failing import fails

rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
dist.init_process_group("cpu:gloo,cuda:nccl", rank=rank, world_size=world)
torch._C._distributed_c10d._register_process_group("default", dist.group.WORLD)
shmem, ccl = mori.shmem, mori.ccl


fails(RuntimeError, "shmem_torch_process_group_init", lambda: ccl.AllgatherSdma(rank, world))
fails(RuntimeError, "no such", lambda: shmem.shmem_torch_process_group_init("no such"))
assert len(shmem.shmem_get_unique_id()) == 128
shmem.shmem_init_attr(shmem.MORI_SHMEM_INIT_WITH_UNIQUEID, rank, world, shmem.shmem_get_unique_id())
shmem.shmem_finalize()
shmem.shmem_torch_process_group_init("default")

gather = ccl.AllgatherSdma(rank, world, transit_buffer_size=1 << 14)
into = ccl.AllGatherIntoTensor(rank, world, 1 << 14)
for count in (1, 3, 1000):
    x = torch.arange(count, dtype=torch.float32, device="cuda") + 100 * rank
    want = torch.cat([torch.arange(count, dtype=torch.float32) + 100 * r for r in range(world)])
    out = torch.zeros(count * world, device="cuda")
    assert gather(x, out, count)
    assert torch.equal(out.cpu(), want)
    out = torch.zeros(count * world, device="cuda")
    assert gather.start_async(x, out, count) and gather.is_async_in_progress()
    fails(RuntimeError, "in progress", lambda a=(x, out, count): gather.start_async(*a))
    assert gather.wait_async() > 0 and not gather.is_async_in_progress()
    assert torch.equal(out.cpu(), want)
    gather.register_output_buffer(out)
    assert gather.is_output_registered(out)
    out.zero_()
    gather(x, out, count)
    assert torch.equal(out.cpu(), want)
    gather.deregister_output_buffer(out)
    out.zero_()
    torch.cuda.synchronize()
    into(x.data_ptr(), out.data_ptr(), count, ccl.DataType.kFloat32)
    torch.cuda.synchronize()
    assert torch.equal(out.cpu(), want)
fails(RuntimeError, "must be a multiple of 4", lambda: into(x.data_ptr(), out.data_ptr(), 3, ccl.DataType.kInt8))
fails(
    RuntimeError,
    "exceeds out capacity",
    lambda: gather(torch.zeros(9000).cuda(), torch.zeros(9000 * world).cuda(), 9000),
)
assert [ccl.size_of(t) for t in ccl.DataType] == [1, 1, 2, 2, 4, 4, 8, 8, 2, 2, 4, 8]

exchange = ccl.All2allSdma(rank, world, transit_buffer_size=1 << 14)
for count in (1, 5, 777):
    x = torch.arange(count * world, dtype=torch.float32, device="cuda") + 10000 * rank
    out = torch.zeros(count * world, device="cuda")
    assert exchange(x, out, count) > 0
    want = [torch.arange(rank * count, (rank + 1) * count, dtype=torch.float32) + 10000 * r for r in range(world)]
    assert torch.equal(out.cpu(), torch.cat(want))

random = np.random.default_rng(7)
for dtype, count in ((torch.float32, 5), (torch.float16, 1002), (torch.int32, 33), (torch.float32, 300_001)):
    reduce = ccl.AllreduceSdma(rank, world, transit_buffer_size=3 << 20, dtype=dtype)
    inputs = [torch.tensor((random.standard_normal(count) * 50).astype(np.float32)).to(dtype) for _ in range(world)]
    total = inputs[0].to(torch.float32)
    for part in inputs[1:]:
        total = total + part.to(torch.float32)
    out = torch.zeros(count, dtype=dtype, device="cuda")
    assert reduce(inputs[rank].cuda(), out, count)
    assert torch.equal(out.cpu(), total.to(dtype)), (dtype, count)
    data = inputs[rank].cuda()
    assert reduce.allreduce_inplace(data, count)
    assert torch.equal(data.cpu(), total.to(dtype))
fails(ValueError, "float64", lambda: ccl.AllreduceSdma(rank, world, dtype=torch.float64))

if world % 2 == 0:  # two groups: of even and of odd PEs
    half = world // 2
    x = torch.arange(10, dtype=torch.float32, device="cuda") + 100 * rank
    want = torch.cat([torch.arange(10, dtype=torch.float32) + 100 * r for r in range(rank % 2, world, 2)])
    some = {"pe_base": rank % 2, "pe_stride": 2}
    for made in (
        ccl.IntraNodeSubGroupAllgatherSdma(rank, world, 4096, half, rank // 2, **some),
        ccl.InterNodeRingAllgather(rank, world, 4096, half, rank // 2, **some),
    ):
        for _ in range(2):
            out = torch.zeros(10 * half, device="cuda")
            made(x, out, 10)
            assert torch.equal(out.cpu(), want), type(made).__name__
        big = torch.zeros(2000, device="cuda")
        fails(RuntimeError, "capacity", lambda m=made, b=big: m(b, torch.zeros(2000 * half, device="cuda"), 2000))
    spread = ccl.IntraNodeSubGroupBroadcastSdma(rank, world, 4096, half, rank // 2, **some)
    out = torch.zeros(10, device="cuda")
    spread(x, out, 10)
    assert torch.equal(out.cpu(), torch.arange(10, dtype=torch.float32) + 100 * (rank % 2))
    fails(RuntimeError, "descriptor", lambda: ccl.InterNodeRingAllgather(rank, world, 4096, half, 0, 1 - rank % 2, 2))
fails(RuntimeError, "ring ShmemMalloc failed", lambda: ccl.InterNodeRingAllgather(rank, world, 1 << 40))

shards = [np.arange(4) + 10 * r for r in range(6)]
assert all((o == np.concatenate(shards)).all() for o in ccl.hier_allgather_reference(shards, 3, 2))
assert all((o == np.concatenate(shards)).all() for o in ccl.inter_node_ring_reference(shards))
assert torch.equal(ccl.inter_node_ring_reference([torch.tensor([1, 2]), torch.tensor([3, 4])])[1], torch.arange(1, 5))

a = shmem.shmem_malloc(4096)
b = shmem.shmem_malloc_align(256, 100)
assert shmem.shmem_ptr_p2p(a, rank, rank) == a and shmem.shmem_ptr_p2p(a + 8, rank, (rank + 1) % world) % 8 == 0
assert shmem.shmem_buffer_register(a, 64) == 0 and shmem.shmem_buffer_deregister(a, 64) == 0
shmem.shmem_free(b)
fails(ValueError, "free already", lambda: shmem.shmem_free(b))
t = shmem.mori_shmem_create_tensor((4, 5), torch.float32)
t.fill_(float(rank))
shmem.shmem_barrier_all()
shmem.shmem_barrier_on_stream()
shmem.mori_shmem_free_tensor(t)
assert shmem.shmem_num_qp_per_pe() == 4
shmem.shmem_finalize()
shmem.shmem_free(a)
print("all equal")
