# torchrun --nproc-per-node 8 mesh_2d.py
"""Two ways of parallelism on a DeviceMesh: two replicas of the data, four shards of a two-layer network's width."""

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh

WIDTH, HIDDEN, ROWS = 6, 8, 4
mesh = init_device_mesh("cpu", (2, 4), mesh_dim_names=("data", "tensor"))
rank = dist.get_rank()
data, tensor = mesh["data"], mesh["tensor"]
share = HIDDEN // tensor.size()
first = tensor.get_local_rank() * share


def weights(*shape):
    return torch.sin(torch.arange(shape[0] * shape[1], dtype=torch.float64)).reshape(shape)


a, b = weights(WIDTH, HIDDEN), weights(HIDDEN, WIDTH)
own_a, own_b = a[:, first : first + share].clone(), b[first : first + share].clone()
for step in range(3):
    x = torch.cos(torch.arange(ROWS * WIDTH, dtype=torch.float64) + step + 7 * data.get_local_rank()).view(ROWS, WIDTH)
    hidden = torch.relu(x @ own_a)
    out = hidden @ own_b
    dist.all_reduce(out, group=tensor.get_group())
    grad = out - x
    grad_b = hidden.T @ grad
    grad_a = x.T @ ((grad @ own_b.T) * (hidden > 0))
    for g in (grad_a, grad_b):
        dist.all_reduce(g, group=data.get_group())
    own_a -= 0.001 * grad_a
    own_b -= 0.001 * grad_b
    loss = (grad**2).sum()
    dist.all_reduce(loss, group=data.get_group())
    if rank == 0:
        print(f"step {step}: {loss.item():.9f}")

parts = [torch.empty_like(own_a) for _ in range(4)]
dist.all_gather(parts, own_a, group=mesh.get_group("tensor"))
whole = torch.cat(parts, 1)
lowest, highest = whole.clone(), whole.clone()
dist.all_reduce(lowest, dist.ReduceOp.MIN)
dist.all_reduce(highest, dist.ReduceOp.MAX)
lines = [None] * 8
dist.all_gather_object(lines, f"rank {rank} at {list(mesh.get_coordinate())}: {own_a.sum().item():.9f}")
if rank == 0:
    print("replicas are equal:", torch.equal(lowest, highest), mesh.shape, mesh.mesh_dim_names)
    print(*lines, sep="\n")
flat = mesh._flatten()
ones = torch.ones(1)
dist.all_reduce(ones, group=flat.get_group())
if rank == 0:
    print(ones.item(), flat.size(), dist.get_process_group_ranks(data.get_group()))
dist.destroy_process_group()
