# torchrun --nproc-per-node 4 globals_per_rank.py 10
"""Keeps a counter in a module's globals, and a cache in a module of the program: each rank has its own."""

import sys

import ledger
import torch
import torch.distributed as dist

counter = int(sys.argv[1])


def main():
    global counter
    dist.init_process_group("gloo")
    for _ in range(dist.get_rank()):
        counter += 1
        ledger.add(counter)
    counters = torch.zeros(dist.get_world_size(), dtype=torch.int64)
    totals = torch.zeros(dist.get_world_size(), dtype=torch.int64)
    dist.all_gather_into_tensor(counters, torch.tensor([counter]))
    dist.all_gather_into_tensor(totals, torch.tensor([ledger.total()]))
    if dist.get_rank() == 0:
        print("counters", counters.tolist())
        print("totals", totals.tolist())
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
