# torchrun --nproc-per-node 4 all_reduce.py
"""Every rank contributes its number; all see sum, largest and product."""

import os

import torch
import torch.distributed as dist


def main():
    dist.init_process_group("gloo")
    rank, size = dist.get_rank(), dist.get_world_size()
    assert (rank, size) == (int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"]))
    for name in ("SUM", "MAX", "PRODUCT"):
        tensor = torch.tensor([rank + 1.0, 2.0, -rank])
        dist.all_reduce(tensor, op=getattr(dist.ReduceOp, name))
        if rank == 0:
            print(name, tensor.tolist())
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
