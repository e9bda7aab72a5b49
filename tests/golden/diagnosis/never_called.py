# torchemu run --nproc-per-node 4 never_called.py
"""Rank 3 leaves the loop one step early: it never calls the last all_reduce."""

import torch
import torch.distributed as dist

dist.init_process_group("gloo")
rank = dist.get_rank()
loss = torch.ones(1)
for step in range(5):
    if rank == 3 and step == 4:
        break
    dist.all_reduce(loss)
    loss.item()
