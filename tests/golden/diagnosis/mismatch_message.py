# torchemu run --nproc-per-node 2 mismatch_message.py
"""A message of four elements for a receiver of three."""

import torch
import torch.distributed as dist

dist.init_process_group("gloo")
if dist.get_rank() == 0:
    dist.send(torch.ones(4), dst=1)
else:
    dist.recv(torch.empty(3), src=0)
