# torchrun --nproc-per-node 8 mesh.py
"""A mesh of data-parallel and tensor-parallel ranks."""

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh

mesh = init_device_mesh("cpu", (2, 2, 2), mesh_dim_names=("pp", "dp", "tp"))
rank = dist.get_rank()
sums = []
for name in mesh.mesh_dim_names:
    t = torch.tensor([float(rank)])
    dist.all_reduce(t, group=mesh.get_group(name))
    sums.append(int(t.item()))
flat = mesh["dp", "tp"]._flatten()
about = {
    "at": list(mesh.get_coordinate()),
    "sums": sums,
    "tp": mesh["tp"].mesh.tolist(),
    "dp, tp": mesh["dp", "tp"].mesh.tolist(),
    "flat": dist.get_process_group_ranks(flat.get_group()),
    "local": [mesh.get_local_rank(i) for i in range(mesh.ndim)],
}
everybody = [None] * dist.get_world_size()
dist.all_gather_object(everybody, about)
if rank == 0:
    print(mesh.mesh_dim_names, tuple(mesh.shape))
    for r, said in enumerate(everybody):
        print(r, *(f"{key} {value};" for key, value in said.items()))
dist.destroy_process_group()
