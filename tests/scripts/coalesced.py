# torchrun --nproc-per-node 3 coalesced.py
"""Exchanges among all pairs in one batch, and lists of tensors in one call."""

import warnings

import torch
import torch.distributed as dist

warnings.simplefilter("ignore")  # all_reduce_coalesced is old
dist.init_process_group("gloo")
rank, size = dist.get_rank(), dist.get_world_size()
others = [r for r in range(size) if r != rank]
into = {r: torch.zeros(r + 1) for r in others}
operations = [dist.P2POp(dist.irecv, into[r], r) for r in others]
operations += [dist.P2POp(dist.isend, torch.full((rank + 1,), 10.0 * rank + r), r) for r in others]
for work in dist.batch_isend_irecv(operations):
    work.wait()

blocks = [torch.tensor([rank, r]) for r in range(size)]
received = [torch.zeros(2, dtype=torch.int64) for _ in range(size)]
dist.all_to_all(received, blocks)
scattered = torch.zeros(2, dtype=torch.int64)
dist.reduce_scatter(scattered, blocks)
tensors = [torch.full((n,), rank + 1) for n in (1, 3)]
dist.all_reduce_coalesced(tensors)
said = [None] * size
about = {r: t.tolist() for r, t in into.items()}
dist.all_gather_object(said, (about, [t.tolist() for t in received], scattered.tolist(), [t.tolist() for t in tensors]))
if rank == 0:
    for r, line in enumerate(said):
        print(r, *line)
dist.destroy_process_group()
