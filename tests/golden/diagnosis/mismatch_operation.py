# torchemu run --nproc-per-node 4 mismatch_operation.py
"""Rank 2 evaluates while the others train."""

import torch
import torch.distributed as dist

dist.init_process_group("gloo")


def train(t):
    dist.all_reduce(t)


def evaluate(t):
    dist.broadcast(t, src=0)


t = torch.ones(8)
(evaluate if dist.get_rank() == 2 else train)(t)
t.tolist()
