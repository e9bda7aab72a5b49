# torchemu run --nproc-per-node 4 --virtual-clock --faults kill.yaml fault_kill.py
"""Rank 2 is killed while it trains."""

import time

import torch
import torch.distributed as dist

dist.init_process_group("nccl")
torch.cuda.set_device(dist.get_rank())
for _ in range(10):
    time.sleep(0.001)
    t = torch.ones(4, device="cuda")
    dist.all_reduce(t)
    t.tolist()
