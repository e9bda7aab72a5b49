# torchemu run --nproc-per-node 3 finally_fails.py
"""Clean-up that needs the other ranks hides nothing: the first failure is the cause."""

import torch
import torch.distributed as dist

dist.init_process_group("gloo")
try:
    if dist.get_rank() == 1:
        raise ValueError("bad batch")
    t = torch.ones(1)
    dist.all_reduce(t)
    t.item()
finally:
    dist.barrier()
    print("clean", dist.get_rank())
