# torchemu run --nproc-per-node 4 circle_of_three.py
"""Ranks 0, 1 and 2 send to their right neighbours before they receive; rank 3 waits for them at the barrier."""

import torch
import torch.distributed as dist

dist.init_process_group("gloo")
rank = dist.get_rank()
t = torch.ones(4)
if rank < 3:
    dist.send(t, dst=(rank + 1) % 3)
    dist.recv(t, src=(rank - 1) % 3)
dist.barrier()
