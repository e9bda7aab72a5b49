"""The hierarchical all-gather that hosts post, against all_gather_into_tensor: one after another, and two at a time."""

import os

import mori
import torch
import torch.distributed as dist
from mori.ccl.host_proxy_ag import HostProxyHierAllGather

rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
dist.init_process_group("cpu:gloo,cuda:nccl", rank=rank, world_size=world)
torch._C._distributed_c10d._register_process_group("default", dist.group.WORLD)
mori.shmem.shmem_torch_process_group_init("default")
G = int(os.environ["LOCAL_WORLD_SIZE"])
h = HostProxyHierAllGather(rank, world, ranks_per_node=G, output_buffer_size=(1 << 16) * world, device="cuda")
assert (h.num_nodes, h.node_id, h.local_rank) == (world // G, rank // G, rank % G)


def case(count, dtype, number):
    x = (torch.arange(count, device="cuda") * 3 + rank * 101 + number).to(dtype)
    want = torch.cat([(torch.arange(count) * 3 + r * 101 + number).to(dtype) for r in range(world)])
    return x, torch.zeros(count * world, dtype=dtype, device="cuda"), want


COUNTS = {torch.float32: (1, 7, 4099), torch.bfloat16: (2, 66), torch.float16: (10,), torch.int32: (33,)}
for dtype, counts in COUNTS.items():
    for count in counts:
        x, out, want = case(count, dtype, 0)
        assert h(x, out, count, torch.cuda.current_stream())
        assert torch.equal(out.cpu(), want), (dtype, count)
cases = [case(5000, torch.float32, i) for i in range(6)]
under_way = []
for x, out, _ in cases:
    under_way.append(h.call_async(x, out, 5000))
    if len(under_way) == 2:
        h._complete(under_way.pop(0))
while under_way:
    h._complete(under_way.pop(0))
torch.cuda.synchronize()
if os.environ.get("MORI_HOSTPROXY_ASYNC_RING") != "1":
    assert all(torch.equal(out.cpu(), want) for _, out, want in cases)
assert h(torch.zeros(0, device="cuda"), torch.zeros(0, device="cuda"), 0)
try:
    h(torch.zeros(1 << 15, device="cuda"), torch.zeros((1 << 15) * world, device="cuda"), 1 << 15)
    raise AssertionError("no error")
except RuntimeError as error:
    assert "exceeds out capacity" in str(error)
try:
    HostProxyHierAllGather(rank, 3 * world, 1)
    raise AssertionError("no error")
except NotImplementedError as error:
    assert "two" in str(error)
mori.shmem.shmem_finalize()
print("all equal")
