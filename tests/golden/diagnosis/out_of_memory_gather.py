# torchemu run --nproc-per-node 4 --topology small.yaml out_of_memory_gather.py
"""Rank 0 gathers shards that only all devices together have room for."""

import torch
import torch.distributed as dist

dist.init_process_group("nccl")
rank, world = dist.get_rank(), dist.get_world_size()
torch.cuda.set_device(rank)
shard = torch.empty(100 << 20, device="cuda")
whole = [] if rank == 0 else None
for _ in range(world if rank == 0 else 0):
    whole.append(torch.empty_like(shard))
dist.gather(shard, whole, dst=0)
