# torchrun --nproc-per-node 4 shards.py
"""A sum by reduce_scatter and all_gather is that of all_reduce."""

import torch
import torch.distributed as dist


def main():
    dist.init_process_group("gloo")
    rank, size = dist.get_rank(), dist.get_world_size()
    whole = torch.tensor([float(rank * 10 + i) for i in range(2 * size)])
    shard = torch.zeros(2)
    dist.reduce_scatter_tensor(shard, whole)
    gathered = torch.zeros(2 * size)
    dist.all_gather_into_tensor(gathered, shard)
    dist.all_reduce(whole)
    if rank == 0:
        print("shard of rank 0", shard.tolist())
        print("gathered", gathered.tolist())
        print("equal", gathered.tolist() == whole.tolist())
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
