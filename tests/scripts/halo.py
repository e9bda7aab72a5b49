# torchrun --nproc-per-node 8 halo.py
"""Heat flows along a rod that is cut into eight: neighbours exchange their ends at every step."""

import torch
import torch.distributed as dist

CELLS, STEPS = 6, 25

dist.init_process_group("gloo")
rank, size = dist.get_rank(), dist.get_world_size()
rod = torch.zeros(CELLS + 2, dtype=torch.float64)
if rank == 0:
    rod[1] = 1000.0
if rank == size - 1:
    rod[-2] = 500.0

for _ in range(STEPS):
    operations = []
    if rank > 0:
        operations += [dist.P2POp(dist.isend, rod[1:2].clone(), rank - 1), dist.P2POp(dist.irecv, rod[:1], rank - 1)]
    else:
        rod[0] = rod[1]
    if rank < size - 1:
        operations += [dist.P2POp(dist.isend, rod[-2:-1].clone(), rank + 1), dist.P2POp(dist.irecv, rod[-1:], rank + 1)]
    else:
        rod[-1] = rod[-2]
    for request in dist.batch_isend_irecv(operations):
        request.wait()
    rod[1:-1] += 0.25 * (rod[:-2] - 2 * rod[1:-1] + rod[2:])

whole = torch.empty(size * CELLS, dtype=torch.float64)
dist.all_gather_into_tensor(whole, rod[1:-1].contiguous())
heat = rod[1:-1].sum()
dist.all_reduce(heat)
hottest = rod[1:-1].max()
dist.all_reduce(hottest, dist.ReduceOp.MAX)
if rank == 0:
    print([round(cell, 3) for cell in whole.tolist()])
    print(f"heat {heat.item():.6f}, hottest {hottest.item():.6f}")
dist.destroy_process_group()
