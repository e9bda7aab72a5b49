# torchemu run --nproc-per-node 3 --explore 50 race.py
"""A server takes the first message to be rank 1's and the second to be rank 2's: true if they come in that order."""

import torch
import torch.distributed as dist

dist.init_process_group("gloo")
rank = dist.get_rank()
if rank == 0:
    parts = torch.empty(2)
    for part in parts:
        dist.recv(part)
    assert parts.tolist() == [1, 2], f"parts are {parts.tolist()}"
else:
    dist.send(torch.tensor(float(rank)), dst=0)
