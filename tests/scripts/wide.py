# torchrun --nproc-per-node 64 wide.py
"""Sixty-four ranks in an 8 × 8 grid: sums along rows and columns, a transposition, a scan, a ring of messages."""

import torch
import torch.distributed as dist

dist.init_process_group("gloo")
rank, size = dist.get_rank(), dist.get_world_size()
side = 8
row, column = divmod(rank, side)
rows = [dist.new_group(range(side * i, side * (i + 1))) for i in range(side)]
columns = [dist.new_group(range(i, size, side)) for i in range(side)]


def told(title, value):
    answers = [torch.empty_like(value) for _ in range(size)] if rank == 0 else None
    dist.gather(value, answers)
    if rank == 0:
        print(title, torch.stack(answers).flatten().tolist(), flush=True)


t = torch.tensor([rank])
dist.all_reduce(t, group=rows[row])
told("sums of rows", t)
t = torch.tensor([rank])
dist.all_reduce(t, dist.ReduceOp.MAX, group=columns[column])
told("greatest of columns", t)

line = torch.arange(side) + 100 * rank
blocks = [torch.empty(1, dtype=torch.int64) for _ in range(side)]
dist.all_gather(blocks, line[:1].clone(), group=columns[column])
told("firsts of columns", torch.cat(blocks)[:2])

mine = torch.full((size,), rank)
parts = torch.empty(size, dtype=torch.int64)
dist.all_to_all_single(parts, mine)
told("transposed", (parts * torch.arange(size)).sum().view(1))

prefix = torch.tensor([rank + 1])
distance = 1
while distance < size:
    works, before = [], torch.zeros(1, dtype=torch.int64)
    if rank + distance < size:
        works.append(dist.isend(prefix.clone(), rank + distance))
    if rank >= distance:
        works.append(dist.irecv(before, rank - distance))
    for work in works:
        work.wait()
    prefix += before
    distance *= 2
told("sums of those before", prefix)

token = torch.zeros(1, dtype=torch.int64)
if rank == 0:
    dist.send(token + 1, 1)
    dist.recv(token, size - 1)
else:
    dist.recv(token, rank - 1)
    dist.send(token * 2 % 1009, (rank + 1) % size)
told("token", token)
sizes = [None] * size
dist.all_gather_object(sizes, "x" * (rank % 5))
if rank == 0:
    print("objects", "".join(sizes) == "".join("x" * (r % 5) for r in range(size)))
dist.destroy_process_group()
