"""A gather inside a node, again and again, with and without the barriers that keep its calls apart."""

import os

import mori
import torch
import torch.distributed as dist

rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
dist.init_process_group("cpu:gloo,cuda:nccl", rank=rank, world_size=world)
torch._C._distributed_c10d._register_process_group("default", dist.group.WORLD)
mori.shmem.shmem_torch_process_group_init("default")
safe = os.environ["SAFE"] == "1"
gather = mori.ccl.IntraNodeSubGroupAllgatherSdma(rank, world, 1 << 16)
x = torch.full((1000,), float(rank), device="cuda")
out = torch.zeros(1000 * world, device="cuda")
for _ in range(3):
    gather(x, out, 1000, barrier=safe, prepare_barrier=safe)
torch.cuda.synchronize()
