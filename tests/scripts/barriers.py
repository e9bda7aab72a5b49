# torchrun --nproc-per-node 4 barriers.py
"""Barriers, plain and monitored; one that a rank misses says which."""

import time
from datetime import timedelta

import torch.distributed as dist

dist.init_process_group("gloo")
rank, size = dist.get_rank(), dist.get_world_size()
for turn in range(size):
    if rank == turn:
        time.sleep(0.01)
        print("turn of", rank, flush=True)
    dist.barrier()

dist.monitored_barrier()
assert dist.barrier(async_op=True).wait() in (True, None)
odd = dist.new_group([1, 3])
if rank in (1, 3):
    dist.barrier(odd)

if rank != 2:
    try:
        dist.monitored_barrier(timeout=timedelta(seconds=0.3))
    except RuntimeError as error:
        text = str(error)
        if rank == 0:
            print("Rank 2 failed" in text, "monitoredBarrier" in text, "300 ms" in text, flush=True)
else:
    time.sleep(0.6)
dist.destroy_process_group()
