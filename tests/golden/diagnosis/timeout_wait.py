# torchemu run --virtual-clock --nproc-per-node 2 timeout_wait.py
"""Rank 0 waits for half a second; rank 1 needs two."""

import time
from datetime import timedelta

import torch
import torch.distributed as dist

dist.init_process_group("gloo")
t = torch.ones(4)
if dist.get_rank() == 0:
    work = dist.irecv(t, src=1)
    work.wait(timeout=timedelta(milliseconds=500))
else:
    time.sleep(2)
    dist.send(t, dst=0)
