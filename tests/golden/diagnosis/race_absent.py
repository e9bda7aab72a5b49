# torchemu run --nproc-per-node 4 --explore 20 race_absent.py
"""The server asks who sent each part: in any order the result is the same."""

import torch
import torch.distributed as dist

dist.init_process_group("gloo")
rank = dist.get_rank()
if rank == 0:
    parts, part = torch.empty(3), torch.empty(())
    for _ in range(3):
        sender = dist.recv(part)
        parts[sender - 1] = part
    assert parts.tolist() == [1, 2, 3], f"parts are {parts.tolist()}"
else:
    dist.send(torch.tensor(float(rank)), dst=0)
