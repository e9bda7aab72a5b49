# torchemu run --nproc-per-node 64 never_called_64.py
"""Ranks 40 to 63 take another branch: the others wait for them in a broadcast."""

import torch
import torch.distributed as dist

dist.init_process_group("gloo")
t = torch.zeros(8)
if dist.get_rank() < 40:
    dist.broadcast(t, src=0)
    print(t.tolist())
