# torchemu run --virtual-clock --nproc-per-node 3 timeout_group.py
"""Rank 2 computes for longer than its group's timeout."""

import time
from datetime import timedelta

import torch
import torch.distributed as dist

dist.init_process_group("nccl", timeout=timedelta(seconds=1))
t = torch.ones(4)
if dist.get_rank() == 2:
    time.sleep(3)
dist.all_reduce(t)
t.tolist()
