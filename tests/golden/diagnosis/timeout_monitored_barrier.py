# torchemu run --virtual-clock --nproc-per-node 4 timeout_monitored_barrier.py
"""Ranks 1 and 3 are late."""

import time
from datetime import timedelta

import torch.distributed as dist

dist.init_process_group("gloo")
if dist.get_rank() % 2 == 1:
    time.sleep(10)
dist.monitored_barrier(timeout=timedelta(seconds=2), wait_all_ranks=True)
