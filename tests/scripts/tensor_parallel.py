# torchrun --nproc-per-node 6 tensor_parallel.py
"""Two layers split over the columns of a mesh, batches over its rows: DeviceMesh in two dimensions."""

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh

WIDTH, INNER = 4, 6


def main():
    mesh = init_device_mesh("cpu", (3, 2), mesh_dim_names=("dp", "tp"))
    rank = dist.get_rank()
    tp, dp = mesh.get_group("tp"), mesh["dp"].get_group()
    part, parts = mesh["tp"].get_local_rank(), mesh["tp"].size()
    first = torch.arange(WIDTH * INNER, dtype=torch.float32).reshape(WIDTH, INNER) / 8
    second = torch.arange(INNER * WIDTH, dtype=torch.float32).reshape(INNER, WIDTH) / 4 - 2
    x = torch.full((2, WIDTH), float(mesh.get_local_rank("dp") + 1))

    partial = torch.relu(x @ first.chunk(parts, 1)[part] - 4) @ second.chunk(parts, 0)[part]
    dist.all_reduce(partial, group=tp)
    right = torch.allclose(partial, torch.relu(x @ first - 4) @ second)
    mean = partial.clone()
    dist.all_reduce(mean, group=dp)
    mean /= mesh.size(0)

    everybody = [None] * dist.get_world_size()
    dist.all_gather_object(everybody, (mesh.get_coordinate(), partial[0].tolist(), right))
    if rank == 0:
        for r, (place, row, good) in enumerate(everybody):
            print(r, list(place), row, good)
        print("mean", mean[0].tolist())
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
