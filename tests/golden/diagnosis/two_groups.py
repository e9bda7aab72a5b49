# torchemu run --nproc-per-node 4 two_groups.py
"""Two groups share ranks, and call in different orders: rank 1 first in one, rank 2 first in the other."""

import torch
import torch.distributed as dist

dist.init_process_group("gloo")
rank = dist.get_rank()
left = dist.new_group([0, 1, 2])
right = dist.new_group([1, 2, 3])
order = {0: [left], 1: [left, right], 2: [right, left], 3: [right]}[rank]
for group in order:
    t = torch.ones(2)
    dist.all_reduce(t, group=group)
    t.tolist()
