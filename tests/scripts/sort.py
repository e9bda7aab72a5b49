# torchrun --nproc-per-node 4 sort.py
"""Numbers sorted over all ranks: samples choose who gets which, then everybody sends to everybody."""

import itertools

import numpy as np
import torch
import torch.distributed as dist

COUNT = 50

dist.init_process_group("gloo")
rank, size = dist.get_rank(), dist.get_world_size()
mine = torch.from_numpy(np.random.default_rng(rank).integers(0, 1000, COUNT + 7 * rank)).sort().values

samples = [torch.empty(size, dtype=torch.int64) for _ in range(size)]
dist.all_gather(samples, mine[:: len(mine) // size][:size].clone())
ordered = torch.cat(samples).sort().values
splitters = ordered[size::size][: size - 1]

owner = torch.bucketize(mine, splitters, right=True)
give = torch.bincount(owner, minlength=size)
take = torch.empty_like(give)
dist.all_to_all_single(take, give)
got = torch.empty(int(take.sum()), dtype=torch.int64)
dist.all_to_all_single(got, mine, take.tolist(), give.tolist())
got = got.sort().values

edges = [None] * size
dist.all_gather_object(edges, (got.numel(), got[0].item(), got[-1].item(), got.sum().item()))
total = mine.sum()
dist.all_reduce(total)
if rank == 0:
    print(edges)
    print("in order", all(a[2] <= b[1] for a, b in itertools.pairwise(edges)))
    print("nothing lost", sum(e[3] for e in edges) == total.item(), sum(e[0] for e in edges))
dist.destroy_process_group()
