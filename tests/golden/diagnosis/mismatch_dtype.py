# torchemu run --nproc-per-node 4 mismatch_dtype.py
"""One rank's tensor is of integers."""

import torch
import torch.distributed as dist

dist.init_process_group("gloo")
count = torch.tensor([3]) if dist.get_rank() == 3 else torch.tensor([3.0])
dist.all_reduce(count)
print(count.item())
