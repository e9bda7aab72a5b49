# torchemu run --nproc-per-node 8 mismatch_size.py
"""The last batch is smaller on the last rank."""

import torch
import torch.distributed as dist

dist.init_process_group("gloo")
logits = torch.zeros(5 if dist.get_rank() == 7 else 8, 2)
dist.all_reduce(logits)
print(logits.sum().item())
