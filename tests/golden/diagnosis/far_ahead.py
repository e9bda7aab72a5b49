# torchemu run --nproc-per-node 2 far_ahead.py
"""Rank 0 is hundreds of kernels ahead of a broadcast that rank 1 never joins."""

import torch
import torch.distributed as dist

dist.init_process_group("nccl")
torch.cuda.set_device(dist.get_rank())
x = torch.ones(4, device="cuda")
if dist.get_rank() == 0:
    dist.broadcast(x, src=0)
    for _ in range(300):
        x = x * 1.5
    print(x.tolist())
