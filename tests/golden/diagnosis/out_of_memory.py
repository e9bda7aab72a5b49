# torchemu run --nproc-per-node 4 --topology small.yaml out_of_memory.py
"""Losses are kept from step to step, and with each of them what its backward pass would need."""

import torch
import torch.distributed as dist

dist.init_process_group("nccl")
torch.cuda.set_device(dist.get_rank())
torch.cuda.set_per_process_memory_fraction(1 / 64)
layer = torch.nn.Linear(256, 256, device="cuda")
losses = []
for _ in range(100):
    x = torch.randn(1024, 256, device="cuda")
    losses.append(layer(x).relu().mean())
