# torchemu run --nproc-per-node 2 wrong_tag.py
"""The sender's tag is not the receiver's."""

import torch
import torch.distributed as dist

dist.init_process_group("gloo")
t = torch.zeros(2)
if dist.get_rank() == 0:
    dist.send(t, dst=1, tag=7)
else:
    dist.recv(t, src=0, tag=8)
