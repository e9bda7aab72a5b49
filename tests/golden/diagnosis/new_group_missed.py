# torchemu run --nproc-per-node 4 new_group_missed.py
"""Only its members create a group; all ranks of the world have to."""

import torch
import torch.distributed as dist

dist.init_process_group("gloo")
rank = dist.get_rank()
if rank < 2:
    pair = dist.new_group([0, 1])
    t = torch.ones(1)
    dist.all_reduce(t, group=pair)
everybody = dist.new_group()
t = torch.ones(1)
dist.all_reduce(t, group=everybody)
print(rank, t.item())
