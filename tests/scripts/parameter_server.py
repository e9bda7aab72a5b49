# torchrun --nproc-per-node 5 parameter_server.py
"""A server and its workers: they pull weights and push gradients whenever they are ready."""

import torch
import torch.distributed as dist

STEPS, WIDTH = 4, 6
STOP, PULL, PUSH = 0, 1, 2


def serve(workers):
    weights, pulls, pushes = torch.zeros(WIDTH, dtype=torch.int64), [0] * (workers + 1), [0] * (workers + 1)
    left = workers
    while left:
        request = torch.empty(1, dtype=torch.int64)
        worker = dist.recv(request)  # from whoever comes first
        if request.item() == STOP:
            left -= 1
        elif request.item() == PULL:
            pulls[worker] += 1
            dist.send(weights, worker)
        else:
            gradient = torch.empty_like(weights)
            dist.recv(gradient, worker)
            weights -= gradient
            pushes[worker] += 1
    print("weights", weights.tolist())
    print("pulls", pulls[1:], "pushes", pushes[1:])


def work(rank):
    weights = torch.empty(WIDTH, dtype=torch.int64)
    for step in range(STEPS + rank):
        dist.send(torch.tensor([PULL]), 0)
        dist.recv(weights, 0)
        assert (weights <= 0).all()
        dist.send(torch.tensor([PUSH]), 0)
        dist.send(torch.arange(WIDTH) * rank + step, 0)
    dist.send(torch.tensor([STOP]), 0)


dist.init_process_group("gloo")
if dist.get_rank() == 0:
    serve(dist.get_world_size() - 1)
else:
    work(dist.get_rank())
dist.destroy_process_group()
