# torchemu run --nproc-per-node 4 gone.py
"""Rank 1 finds no data and leaves with sys.exit(0)."""

import sys

import torch
import torch.distributed as dist

dist.init_process_group("gloo")
batches = [3, 0, 2, 2][dist.get_rank()]
if batches == 0:
    sys.exit(0)
total = torch.tensor([batches])
dist.all_reduce(total)
print(total.item())
