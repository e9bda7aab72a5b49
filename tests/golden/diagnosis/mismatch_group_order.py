# torchemu run --nproc-per-node 4 mismatch_group_order.py
"""Ranks 0 and 1 create groups in another order than ranks 2 and 3."""

import torch
import torch.distributed as dist

dist.init_process_group("gloo")
rank = dist.get_rank()
lists = [[0, 1], [2, 3]] if rank < 2 else [[2, 3], [0, 1]]
first = dist.new_group(lists[0])
second = dist.new_group(lists[1])
t = torch.ones(1)
dist.all_reduce(t, group=first)
print(rank, t.item())
