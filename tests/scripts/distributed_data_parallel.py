# torchrun --nproc-per-node 4 distributed_data_parallel.py
"""DistributedDataParallel: training in step, gradients of several passes, parameters that some ranks do not use."""

import numpy as np
import torch
import torch.distributed as dist
import torch.nn.functional as F  # noqa: N812
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP  # noqa: N817


def with_weights(model, seed):
    rng = np.random.default_rng(seed)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(torch.from_numpy(rng.normal(0, 0.5, tuple(parameter.shape))))
    return model


def tell(text):
    """All ranks must say the same."""
    said = [None] * dist.get_world_size()
    dist.all_gather_object(said, text)
    if dist.get_rank() == 0:
        print(text if len(set(said)) == 1 else said)


def digest(model):
    return " ".join(f"{p.detach().double().sum().item():.6f}" for p in model.parameters())


def train(rank, size):
    model = nn.Sequential(nn.Linear(3, 16), nn.LayerNorm(16), nn.SiLU(), nn.Linear(16, 4)).double()
    model = DDP(with_weights(model, seed=rank), bucket_cap_mb=0.0005)
    tell(f"begins with {digest(model)}")
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.02)
    rng = np.random.default_rng(100)
    x, y = rng.normal(size=(size * 8, 3)), rng.integers(0, 4, size * 8)
    x, y = torch.from_numpy(x)[rank::size], torch.from_numpy(y)[rank::size]
    for step in range(6):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        mean = loss.detach().clone()
        dist.all_reduce(mean)
        tell(f"step {step}: loss {mean.item() / size:.6f}, weights {digest(model)}")
    tell(" ".join(model.state_dict()))


def accumulate(rank):
    model = DDP(with_weights(nn.Linear(2, 1), seed=0))
    with model.no_sync():
        for part in range(2):
            model(torch.full((1, 2), rank + 1.0 + part)).sum().backward()
    print_in_turn(f"alone {model.module.weight.grad.tolist()}")
    model(torch.full((1, 2), 10.0)).sum().backward()
    tell(f"together {model.module.weight.grad.tolist()}")


def print_in_turn(text):
    for turn in range(dist.get_world_size()):
        if turn == dist.get_rank():
            print(turn, text, flush=True)
        dist.barrier()


class Experts(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(2, 2, bias=False) for _ in range(3)])
        self.register_buffer("calls", torch.zeros(1))

    def forward(self, x, which):
        self.calls += 1
        return sum(self.layers[i](x) for i in which)


def gradients(model):
    return [None if p.grad is None else p.grad.sum().item() for p in model.parameters()]


def choose(rank):
    model = DDP(with_weights(Experts(), seed=0), find_unused_parameters=True)
    for which in ([0], [0, 1] if rank == 0 else [0], [rank % 2]):
        model.zero_grad()
        model(torch.ones(1, 2) * (rank + 1), which).sum().backward()
        tell(f"gradients {gradients(model)}, calls {model.module.calls.item()}")


def forget(rank):
    model = DDP(with_weights(Experts(), seed=0))
    model(torch.ones(1, 2), [0]).sum().backward()
    print_in_turn(gradients(model))
    try:
        model(torch.ones(1, 2), [0])
    except RuntimeError as error:
        first, *_, last, _ = str(error).splitlines()
        print_in_turn(f"{first[:110]} … {last}")


def main():
    dist.init_process_group("gloo")
    rank, size = dist.get_rank(), dist.get_world_size()
    train(rank, size)
    accumulate(rank)
    choose(rank)
    forget(rank)
    for wrong in (lambda: DDP(nn.ReLU()), lambda: DDP(nn.Linear(1, 1), device_ids=[0])):
        try:
            wrong()
        except Exception as error:
            tell(f"{type(error).__name__}: {error}")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
