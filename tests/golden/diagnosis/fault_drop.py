# torchemu run --nproc-per-node 4 --virtual-clock --faults drop.yaml fault_drop.py
"""The link between SIPs 0 and 1 fails."""

import time
from datetime import timedelta

import torch
import torch.distributed as dist

dist.init_process_group("nccl", timeout=timedelta(seconds=30))
torch.cuda.set_device(dist.get_rank())
for _ in range(10):
    time.sleep(0.001)
    t = torch.ones(4, device="cuda")
    dist.all_reduce(t)
    t.tolist()
