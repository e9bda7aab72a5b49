"""A batch of messages to the next rank: it prints the microseconds of the host."""

import os
import time

import torch
import torch.distributed as dist

torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
dist.init_process_group("nccl")
rank, world, count = dist.get_rank(), dist.get_world_size(), int(os.environ["COUNT"])
x, y = torch.full((3,), float(rank), device="cuda"), torch.zeros(count, 3, device="cuda")
torch.cuda.synchronize()
dist.barrier()
torch.cuda.synchronize()
begun = time.perf_counter()
ops = [dist.P2POp(dist.isend, x, (rank + 1) % world) for _ in range(count)]
ops += [dist.P2POp(dist.irecv, y[i], (rank - 1) % world) for i in range(count)]
works = dist.batch_isend_irecv(ops)
spent = time.perf_counter() - begun
for work in works:
    work.wait()
torch.cuda.synchronize()
assert y.tolist() == [[float((rank - 1) % world)] * 3] * count
print(f"{spent * 1e6:.2f}")
