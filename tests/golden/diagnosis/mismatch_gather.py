# torchemu run --nproc-per-node 3 mismatch_gather.py
"""Rank 2 has more rows than rank 0 has made room for."""

import torch
import torch.distributed as dist

dist.init_process_group("gloo")
rank = dist.get_rank()
mine = torch.ones(6 if rank == 2 else 4)
parts = [torch.empty(4) for _ in range(3)]
if rank == 2:
    parts[2] = torch.empty(6)
dist.all_gather(parts, mine)
print(parts[2].sum().item())
