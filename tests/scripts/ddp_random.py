# torchrun --nproc-per-node 3 ddp_random.py
"""Random programs with DistributedDataParallel: what is used, what is in step, how buckets and gradients are kept."""

import contextlib
import random

import numpy as np
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

STEPS = 5


class Layers(nn.Module):
    def __init__(self, count):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(3, 3, bias=bool(i % 2)) for i in range(count)])
        self.register_buffer("calls", torch.zeros(2))

    def forward(self, x, which):
        self.calls += 1
        for i in which:
            x = torch.tanh(self.layers[i](x))
        return x


def made(shared, seed, rank):
    """A model with parameters of its own on each rank, which are to become rank 0's; and its optimizer."""
    model = Layers(shared.randint(1, 4))
    rng = np.random.default_rng(seed + rank)
    for p in model.parameters():
        p.data = torch.from_numpy(rng.normal(size=tuple(p.shape)))
    model.layers[0].weight.requires_grad_(shared.random() < 0.8 or len(model.layers) == 1)
    find = shared.random() < 0.6
    model = DistributedDataParallel(
        model,
        find_unused_parameters=find,
        gradient_as_bucket_view=shared.random() < 0.5 and not find,
        bucket_cap_mb=shared.choice([None, 1e-4, 5e-5, 1]),
        broadcast_buffers=shared.random() < 0.5,
    )
    if shared.random() < 0.5:
        return model, torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    return model, torch.optim.Adam(model.parameters(), lr=0.1)


def used(own, model):
    """The layers of a pass: those that this rank chooses, where others need not use them."""
    layers = model.module.layers
    if not model.find_unused_parameters:
        return range(len(layers))
    which = sorted(own.sample(range(len(layers)), own.randint(1, len(layers))))
    return which if which != [0] or layers[0].weight.requires_grad else range(len(layers))


def program(seed, rank):
    shared, own = random.Random(seed), random.Random(seed * 100 + rank)
    model, optimizer = made(shared, seed, rank)
    alone = False
    for step in range(STEPS):
        if shared.random() < 0.6 and not alone:
            model.zero_grad()
        alone = shared.random() < 0.25
        x = torch.from_numpy(np.random.default_rng([seed, step, rank]).normal(size=(2, 3)))
        with model.no_sync() if alone else contextlib.nullcontext():
            model(x, used(own, model)).pow(2).sum().backward()
        if shared.random() < 0.5:
            optimizer.step()
        grads = [None if p.grad is None else round(p.grad.sum().item(), 6) for p in model.parameters()]
        yield (
            seed,
            step,
            alone,
            grads,
            [round(p.sum().item(), 6) for p in model.parameters()],
            model.module.calls.tolist(),
        )


def main():
    dist.init_process_group("gloo")
    rank, size = dist.get_rank(), dist.get_world_size()
    torch.set_default_dtype(torch.float64)
    for seed in range(10):
        lines = [None] * size
        dist.all_gather_object(lines, list(program(seed, rank)))
        if rank == 0:
            for number, of_rank in enumerate(lines):
                for line in of_rank:
                    print(number, *line)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
