# torchrun --nproc-per-node 3 zero.py
"""ZeRO's first stage by hand: each rank owns some parameters, reduces their gradients and sends the results."""

import torch
import torch.distributed as dist

dist.init_process_group("gloo")
rank, size = dist.get_rank(), dist.get_world_size()
sizes = [3, 1, 4, 1, 5, 9, 2]
owner = [i % size for i in range(len(sizes))]
parameters = [torch.ones(n, dtype=torch.float64) for n in sizes]
first, second = {}, {}
for step in range(1, 6):
    gradients = [p * (rank + 1) * (i + 1) / step for i, p in enumerate(parameters)]
    for i, g in enumerate(gradients):
        dist.reduce(g, dst=owner[i])
    for i, (p, g) in enumerate(zip(parameters, gradients, strict=True)):
        if owner[i] != rank:
            continue
        g /= size
        first[i] = 0.9 * first.get(i, torch.zeros_like(g)) + 0.1 * g
        second[i] = 0.99 * second.get(i, torch.zeros_like(g)) + 0.01 * g * g
        p -= 0.1 * (first[i] / (1 - 0.9**step)) / ((second[i] / (1 - 0.99**step)).sqrt() + 1e-8)
    works = [dist.broadcast(p, src=owner[i], async_op=True) for i, p in enumerate(parameters)]
    for work in works:
        work.wait()
norm = sum((p**2).sum() for p in parameters)
norms = [torch.zeros((), dtype=torch.float64) for _ in range(size)]
dist.all_gather(norms, norm)
if rank == 0:
    print([f"{p[0].item():.6f}" for p in parameters])
    print("states here", sorted(first), "norms equal", all(torch.equal(n, norm) for n in norms), f"{norm.item():.6f}")
dist.destroy_process_group()
