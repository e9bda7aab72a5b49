# torchemu run --nproc-per-node 4 failing_rank.py
"""Rank 2 divides by zero; the others wait for it."""

import torch
import torch.distributed as dist


def mean(t, count):
    dist.all_reduce(t)
    return t.sum().item() / count


dist.init_process_group("gloo")
for step in range(3):
    print(dist.get_rank(), step) if dist.get_rank() == 0 else None
    mean(torch.ones(2), 2 - step if dist.get_rank() == 2 else 1)
