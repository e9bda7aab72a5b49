# torchemu run --nproc-per-node 3 mismatch_splits.py
"""Rank 1 expects two rows of rank 2, which sends one."""

import torch
import torch.distributed as dist

dist.init_process_group("gloo")
rank = dist.get_rank()
give = [1, 1, 1]
take = [1, 1, 2] if rank == 1 else [1, 1, 1]
received = torch.empty(sum(take), 4)
dist.all_to_all_single(received, torch.ones(sum(give), 4), take, give)
print(received.sum().item())
