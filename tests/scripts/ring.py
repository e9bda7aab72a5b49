# torchrun --nproc-per-node 5 ring.py
"""A ring all-reduce made of sends and receives, in three ways of writing them."""

import torch
import torch.distributed as dist


def with_requests(out, into, right, left):
    requests = [dist.isend(out, right), dist.irecv(into, left)]
    for request in requests:
        request.wait()


def with_a_batch(out, into, right, left):
    operations = [dist.P2POp(dist.isend, out, right), dist.P2POp(dist.irecv, into, left)]
    for request in dist.batch_isend_irecv(operations):
        request.wait()


def in_turns(out, into, right, left):
    if dist.get_rank() % 2 == 0:
        dist.send(out, right)
        dist.recv(into, left)
    else:
        arrived = torch.empty_like(into)
        dist.recv(arrived, left)
        dist.send(out, right)
        into.copy_(arrived)


def ring_all_reduce(t, exchange):
    rank, size = dist.get_rank(), dist.get_world_size()
    chunks = t.chunk(size)
    right, left = (rank + 1) % size, (rank - 1) % size
    for step in range(size - 1):
        arrived = torch.zeros_like(chunks[(rank - step - 1) % size])
        exchange(chunks[(rank - step) % size].clone(), arrived, right, left)
        chunks[(rank - step - 1) % size].add_(arrived)
    for step in range(size - 1):
        arrived = torch.zeros_like(chunks[(rank - step) % size])
        exchange(chunks[(rank + 1 - step) % size].clone(), arrived, right, left)
        chunks[(rank - step) % size].copy_(arrived)


dist.init_process_group("gloo")
rank, size = dist.get_rank(), dist.get_world_size()
for exchange in (with_requests, with_a_batch, in_turns):
    t = torch.arange(3 * size, dtype=torch.float32) * (rank + 1)
    want = t.clone()
    dist.all_reduce(want)
    ring_all_reduce(t, exchange)
    right = [None] * size
    dist.all_gather_object(right, torch.equal(t, want))
    if rank == 0:
        print(exchange.__name__, t.tolist(), right)
dist.destroy_process_group()
