# torchemu run --nproc-per-node 4 two_groups_unread.py
"""Ranks of a ring call in the groups to their right and left: each in the one to its right first. Nobody reads."""

import torch
import torch.distributed as dist

dist.init_process_group("nccl")
rank = dist.get_rank()
torch.cuda.set_device(rank)
groups = [dist.new_group([i, (i + 1) % 4]) for i in range(4)]
t = torch.ones(2, device="cuda")
for i in rank, rank - 1:
    dist.all_reduce(t, group=groups[i])
    t += 1
