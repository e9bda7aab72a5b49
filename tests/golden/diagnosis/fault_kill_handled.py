# torchemu run --nproc-per-node 4 --virtual-clock --faults kill.yaml fault_kill_handled.py
"""Rank 2 is killed; the survivors notice after their group's timeout, leave it and go on among themselves."""

import os
import time
from datetime import timedelta

import torch
import torch.distributed as dist

os.environ["TORCH_NCCL_BLOCKING_WAIT"] = "1"  # or else the watchdog ends the survivors
dist.init_process_group("nccl", timeout=timedelta(seconds=5))
rank = dist.get_rank()
torch.cuda.set_device(rank)
survivors = dist.new_group([0, 1, 3])
group = dist.group.WORLD
for step in range(6):
    time.sleep(0.001)
    t = torch.ones(4, device="cuda")
    try:
        dist.all_reduce(t, group=group)
        t.tolist()
    except dist.DistBackendError as error:
        if rank == 0:
            print(f"step {step}, {time.time():.3f} s:", str(error).rpartition("; ")[2])
        group = survivors
        t = torch.ones(4, device="cuda")  # what the failed all_reduce has left of the other one nobody knows
        dist.all_reduce(t, group=group)
    if rank == 0:
        print(f"step {step}: {t[0].item():.0f} ranks")
