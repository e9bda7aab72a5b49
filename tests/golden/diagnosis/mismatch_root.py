# torchemu run --nproc-per-node 3 mismatch_root.py
"""Each rank believes that it is the one to broadcast."""

import torch
import torch.distributed as dist

dist.init_process_group("gloo")
t = torch.ones(4)
dist.broadcast(t, src=dist.get_rank())
print(t.tolist())
