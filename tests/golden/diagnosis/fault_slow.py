# torchemu run --nproc-per-node 4 --virtual-clock --faults slow.yaml fault_slow.py
"""Rank 3 launches everything a thousand times as slowly: a monitored barrier finds out who is late."""

from datetime import timedelta

import torch
import torch.distributed as dist

dist.init_process_group("gloo")
t = torch.ones(4)
for _ in range(5):
    dist.all_reduce(t)
dist.monitored_barrier(timeout=timedelta(milliseconds=2))
