# torchrun --nproc-per-node 3 uneven_batches.py
"""Join: DistributedDataParallel and ZeroRedundancyOptimizer where ranks have different numbers of batches."""

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.algorithms.join import Join
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.nn.parallel import DistributedDataParallel as DDP  # noqa: N817


class Counting(nn.Module):
    """With a buffer, and a layer that odd batches do not use."""

    def __init__(self, width=5):
        super().__init__()
        self.first, self.second, self.last = nn.Linear(6, width), nn.Linear(width, width), nn.Linear(width, 2)
        self.register_buffer("batches", torch.zeros(1))

    def forward(self, x, skip=False):
        self.batches += 1
        x = self.first(x).tanh()
        return self.last(x if skip else self.second(x))


def batch(number):
    return (torch.arange(24.0).reshape(4, 6) * (number + 1) * 0.1).sin()


def net(**options):
    torch.manual_seed(3)
    return DDP(Counting(), **options)


def tell(name, module):
    """All ranks end with the same parameters."""
    text = " ".join(f"{p.detach().double().sum().item():.4f}" for p in module.parameters())
    said = [None] * dist.get_world_size()
    dist.all_gather_object(said, f"{text} after {int(module.module.batches)}")
    if dist.get_rank() == 0:
        print(name, said[0] if len(set(said)) == 1 else said)


def train(module, optimizer, count, skips=False):
    for number in range(count):
        optimizer.zero_grad()
        output = module(batch(number * 3 + dist.get_rank()), skip=skips and number % 2 == 1)
        output.square().mean().backward()
        optimizer.step()


def more_on_later_ranks(**options):
    module = net()
    optimizer = torch.optim.SGD(module.parameters(), lr=0.1)
    with module.join(**options):
        train(module, optimizer, 2 * dist.get_rank() + 1)
    tell(f"later {options}", module)


def none_on_one_rank():
    module = net()
    optimizer = ZeroRedundancyOptimizer(module.parameters(), torch.optim.SGD, lr=0.1)
    with Join([module, optimizer]):
        train(module, optimizer, [3, 0, 2][dist.get_rank()])
    tell("divided optimizer", module)


def unused_parameters():
    module = net(find_unused_parameters=True)
    with module.join():
        train(module, torch.optim.SGD(module.parameters(), lr=0.1), 4 - dist.get_rank(), skips=True)
    tell("unused", module)


def accumulated():
    module = net()
    optimizer = torch.optim.SGD(module.parameters(), lr=0.1)
    with module.join():
        for number in range(1 + dist.get_rank()):
            optimizer.zero_grad()
            with module.no_sync():
                module(batch(number)).square().mean().backward()
            module(batch(number + 7)).square().mean().backward()
            optimizer.step()
    tell("accumulated", module)


def ended():
    module = net()
    try:
        with module.join(throw_on_early_termination=True):
            train(module, torch.optim.SGD(module.parameters(), lr=0.1), 3 if dist.get_rank() else 1)
    except RuntimeError as error:
        said = [None] * dist.get_world_size()
        dist.all_gather_object(said, str(error))
        if dist.get_rank() == 0:
            print(*said, sep="\n")


def main():
    dist.init_process_group("gloo")
    more_on_later_ranks()
    more_on_later_ranks(divide_by_initial_world_size=False)
    none_on_one_rank()
    unused_parameters()
    accumulated()
    ended()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
