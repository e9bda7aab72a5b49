# torchemu run --nproc-per-node 3 nobody_sends.py
"""A server receives from anybody, once more than its workers send."""

import torch
import torch.distributed as dist

dist.init_process_group("gloo")
t = torch.zeros(2)
if dist.get_rank() == 0:
    for _ in range(3):
        dist.recv(t)
else:
    dist.send(t, dst=0)
