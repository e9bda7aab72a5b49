# torchemu run --nproc-per-node 1 --topology small.yaml out_of_memory_absent.py
"""The numbers are kept and not the tensors: the memory of a step is free in the next one."""

import torch

torch.cuda.set_per_process_memory_fraction(1 / 64)
layer = torch.nn.Linear(256, 256, device="cuda")
losses = []
for _ in range(20):
    x = torch.randn(1024, 256, device="cuda")
    losses.append(layer(x).relu().mean().item())
print(f"{len(losses)} losses, {torch.cuda.memory_allocated() >> 20} MiB now")
print(torch.cuda.memory_summary())
