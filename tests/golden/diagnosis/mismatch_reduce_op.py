# torchemu run --nproc-per-node 2 mismatch_reduce_op.py
"""Rank 0 takes the maximum, rank 1 the sum."""

import torch
import torch.distributed as dist

dist.init_process_group("gloo")
t = torch.ones(4)
dist.all_reduce(t, dist.ReduceOp.MAX if dist.get_rank() == 0 else dist.ReduceOp.SUM)
print(t.tolist())
