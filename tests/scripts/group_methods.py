# torchrun --nproc-per-node 2 group_methods.py
"""Process groups' own methods with their options, and what the flight recorder has kept of it."""

import os

os.environ["TORCH_FR_BUFFER_SIZE"] = "100"

import pickle
from datetime import timedelta

import torch
import torch.distributed as dist
from torch._C import _distributed_c10d as c10d


def show(rank, *values):
    for turn in range(2):
        if rank == turn:
            print(f"rank {rank}", *values, flush=True)
        dist.barrier()


def main():
    dist.init_process_group("gloo")
    group = dist.group.WORLD
    rank, world = group.rank(), group.size()
    t = torch.arange(3.0) + 10 * rank
    opts = dist.AllreduceOptions()
    opts.reduceOp = dist.ReduceOp.MAX
    work = group.allreduce([t.clone()], opts)
    show(rank, "allreduce", work.wait(), work.result()[0].tolist())
    u = t.clone()
    group.allreduce(u, dist.ReduceOp.SUM, timeout=timedelta(seconds=60)).wait()
    show(rank, "sum", u.tolist())
    u = t.clone()
    group.broadcast(u, 1).wait()
    show(rank, "broadcast", u.tolist())
    reduced = dist.ReduceOptions()
    reduced.rootRank = 1
    u = t.clone()
    group.reduce([u], reduced).wait()
    if rank == 1:
        print("reduce", u.tolist(), flush=True)
    blocks = [torch.zeros(3) for _ in range(world)]
    group.allgather([blocks], [t]).wait()
    show(rank, "allgather", [b.tolist() for b in blocks])
    flat = torch.zeros(6)
    group._allgather_base(flat, t).wait()
    show(rank, "_allgather_base", flat.tolist())
    part = torch.zeros(3)
    group.scatter([part], [[t, t + 1]] if rank == 0 else [], dist.ScatterOptions()).wait()
    show(rank, "scatter", part.tolist())
    swapped = torch.zeros(4)
    group.alltoall_base(swapped, torch.arange(4.0) + 4 * rank, [], []).wait()
    show(rank, "alltoall_base", swapped.tolist())
    if rank == 0:
        group.send([t], 1, 5).wait()
    else:
        group.recv([part], 0, 5).wait()
    show(rank, "message", part.tolist())
    show(rank, group.name(), group.group_name, group.group_desc, group.bound_device_id)
    for misuse in (lambda: group.broadcast(t, 2), lambda: setattr(opts, "reduceOp", "max")):
        try:
            misuse()
        except (RuntimeError, TypeError) as error:
            show(rank, type(error).__name__)
    kept = pickle.loads(c10d._dump_fr_trace())["entries"]
    if rank == 0:
        for entry in kept:
            if entry["profiling_name"] in ("gloo:all_reduce", "gloo:broadcast", "gloo:reduce", "gloo:scatter"):
                print(entry["profiling_name"], entry["input_sizes"], entry["input_dtypes"], entry["process_group"])
    dist.destroy_process_group()


main()
