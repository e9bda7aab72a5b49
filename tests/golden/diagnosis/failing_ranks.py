# torchemu run --nproc-per-node 8 failing_ranks.py
"""Several ranks fail, in several ways: the earliest in simulated time comes first."""

import sys

import torch
import torch.distributed as dist

dist.init_process_group("gloo")
rank = dist.get_rank()
t = torch.ones(2)
if rank != 6:
    dist.all_reduce(t, group=None) if rank < 0 else None
if rank == 6:
    sys.exit(3)
if rank == 5:
    [1, 2, 3][rank]
if rank in (1, 2, 3):
    raise RuntimeError("no checkpoint in " + ("/data" if rank != 2 else "/scratch"))
dist.barrier()
