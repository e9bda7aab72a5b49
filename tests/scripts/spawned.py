# python spawned.py
"""A program that starts its ranks itself."""

import os

import torch
import torch.distributed as dist
import torch.multiprocessing as mp

step = 0


class Options:
    def __init__(self, scale):
        self.scale = scale


def worker(rank, size, options):
    global step
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="29517")
    dist.init_process_group("gloo", rank=rank, world_size=size)
    assert isinstance(options, Options)
    for _ in range(rank + 1):
        step += 1
    steps = torch.zeros(size, dtype=torch.int64)
    dist.all_gather_into_tensor(steps, torch.tensor([step * options.scale]))
    if rank == 0:
        print("steps", steps.tolist())
    dist.destroy_process_group()


if __name__ == "__main__":
    step = 1000
    mp.spawn(worker, args=(3, Options(2)), nprocs=3)
    print("in the parent", step)
