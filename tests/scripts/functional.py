# torchrun --nproc-per-node 4 functional.py
"""Functional collectives: they leave their arguments alone and give new tensors."""

import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as funcol

dist.init_process_group("gloo")
rank, size = dist.get_rank(), dist.get_world_size()
world = dist.group.WORLD
t = torch.arange(4.0) + 10 * rank
results = {
    "all_reduce": funcol.all_reduce(t, "sum", world),
    "max": funcol.all_reduce(t, "max", world),
    "all_gather_tensor": funcol.all_gather_tensor(t[:1], 0, world),
    "all_gather_tensor 1": funcol.all_gather_tensor(t.reshape(2, 2), 1, world),
    "reduce_scatter_tensor": funcol.reduce_scatter_tensor(t, "sum", 0, world),
    "all_to_all_single": funcol.all_to_all_single(t, [1] * size, [1] * size, world),
    "broadcast": funcol.broadcast(t, 2, world),
}
results = {name: funcol.wait_tensor(value) for name, value in results.items()}
chained = funcol.all_reduce(funcol.all_reduce(t, "sum", world) * 2, "sum", world) + 1
if rank == 1:
    for name, value in results.items():
        print(name, value.tolist())
    print("argument", t.tolist(), "chained", chained.tolist())
dist.destroy_process_group()
