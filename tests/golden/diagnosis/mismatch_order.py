# torchemu run --nproc-per-node 2 mismatch_order.py
"""The same calls in different orders: dictionaries that were filled differently."""

import torch
import torch.distributed as dist

dist.init_process_group("gloo")
gradients = {"weight": torch.ones(6), "bias": torch.ones(2)}
if dist.get_rank() == 1:
    gradients = {"bias": torch.ones(2), "weight": torch.ones(6)}
for gradient in gradients.values():
    dist.all_reduce(gradient)
    gradient.tolist()
