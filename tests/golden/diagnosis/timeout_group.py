# torchemu run --virtual-clock --nproc-per-node 3 timeout_group.py
"""Rank 2 computes for longer than its group's timeout."""

import time
from datetime import timedelta

import torch
import torch.distributed as dist

dist.init_process_group("nccl", timeout=timedelta(seconds=1))
torch.cuda.set_device(dist.get_rank())
t = torch.ones(4, device="cuda")
if dist.get_rank() == 2:
    time.sleep(3)
dist.all_reduce(t)
t.tolist()
