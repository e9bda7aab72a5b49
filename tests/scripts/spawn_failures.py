# python spawn_failures.py
"""Starts ranks that fail, and prints what a program learns of that."""

import os
import sys

import torch
import torch.distributed as dist
import torch.multiprocessing as mp


def raises(rank):
    if rank == 1:
        raise KeyError("no such key")


def leaves(rank, code):
    if rank == 2:
        sys.exit(code)


def talks(rank, size, port):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    dist.init_process_group("gloo", rank=rank, world_size=size)
    t = torch.tensor([rank])
    dist.all_reduce(t)
    assert t.item() == size * (size - 1) // 2
    dist.destroy_process_group()


if __name__ == "__main__":
    try:
        mp.spawn(raises, nprocs=3)
    except mp.ProcessRaisedException as error:
        lines = str(error).strip().splitlines()
        print(error.error_index, lines[0], "...", lines[-1])
    try:
        mp.spawn(leaves, args=(5,), nprocs=3)
    except mp.ProcessExitedException as error:
        print(error.error_index, error.exit_code, str(error).strip().splitlines()[0])
    print(mp.spawn(leaves, args=(0,), nprocs=3))
    context = mp.spawn(talks, args=(3, 29613), nprocs=3, join=False)
    while not context.join():
        pass
    print(len(context.processes), [p.exitcode for p in context.processes], context.join())
